#include "mpi/headers/matched.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include "mpi/calls/count_arrays.hpp"
#include "mpi/calls/sides/received_status.hpp"
#include "mpi/headers/posting.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/requests/outstanding.hpp"
#include "mpi/table/entry_points.hpp"
#include "transfer/headers/attention.hpp"

namespace gapless::mpi::headers {

constinit std::atomic<std::size_t> internal::stashed{0}, internal::given{0};

namespace {

using transfer::headers::Header;

/// A message of the process to itself. The library may read the bytes until the message is received.
struct Parcel {
  ~Parcel() { transfer::headers::wipe(bytes.data()); }
  alignas(16) std::array<std::byte, Header::size> bytes{};
  MPI_Request request = MPI_REQUEST_NULL;
};

// Never destroyed: messages may be received while the process ends.
struct Messages {
  std::mutex mutex;  ///< guards all below
  std::deque<Matched> stash, given;
  std::list<Parcel> parcels;
  unsigned next_tag = 0;
  std::uint64_t last_number = 0;  ///< of a stashed message
};

Messages& messages() noexcept {
  static Messages& instance = *new Messages;
  return instance;
}

bool matches(const Matched& matched, int source, int tag, MPI_Comm communicator) noexcept {
  return matched.communicator == communicator && (source == MPI_ANY_SOURCE || matched.status.MPI_SOURCE == source) &&
         (tag == MPI_ANY_TAG || matched.status.MPI_TAG == tag);
}

std::deque<Matched>::iterator find_stashed(int source, int tag, MPI_Comm communicator) noexcept {
  return std::ranges::find_if(messages().stash,
                              [&](const Matched& each) { return matches(each, source, tag, communicator); });
}

void count_stash() noexcept { internal::stashed.store(messages().stash.size(), std::memory_order_relaxed); }
void count_given() noexcept { internal::given.store(messages().given.size(), std::memory_order_relaxed); }

/// Can the message be a header, as far as its status tells?
bool has_headers_length(const MPI_Status& status) noexcept {
  if (!transfer::headers::is_attentive(transfer::headers::own_inbox().head())) return false;
  MPI_Count bytes = 0;
  return native.Get_elements_x(&status, MPI_BYTE, &bytes) == MPI_SUCCESS &&
         bytes == static_cast<MPI_Count>(Header::size);
}

/// Lets go of parcels that have been received. Looks at two, other ones each time: one more than each call adds.
void sweep(std::list<Parcel>& parcels) noexcept {
  for (int looks = 0; looks < 2 && !parcels.empty(); ++looks) {
    int is_complete = 0;
    const int code = native.Test(&parcels.front().request, &is_complete, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && is_complete != 0) {
      parcels.pop_front();
    } else {
      parcels.splice(parcels.end(), parcels, parcels.begin());
    }
  }
}

/// Receives a matched message, sends the message to this process itself, and matches it again. After an error, for
/// instance if the sender has ended or there is no memory, the message is lost, and an error handler has been told.
int put_back(Messages& all, Matched& matched) {
  sweep(all.parcels);
  Parcel& parcel = all.parcels.emplace_back();
  constexpr int length = static_cast<int>(Header::size);
  int code = native.Mrecv(parcel.bytes.data(), length, MPI_BYTE, &matched.handle, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) return code;
  if (transfer::headers::is_header(parcel.bytes.data(), Header::size)) {
    Header header;
    std::memcpy(&header, parcel.bytes.data(), sizeof header);
    native.Status_set_elements_x(&matched.status, MPI_BYTE, static_cast<MPI_Count>(header.bytes()));
  }
  const auto tag = static_cast<int>(all.next_tag++ % put_back_tags);
  const MPI_Comm own = runtime::own_communicator();
  code = native.Isend(parcel.bytes.data(), length, MPI_BYTE, 0, tag, own, &parcel.request);
  if (code == MPI_SUCCESS) code = native.Mprobe(0, tag, own, &matched.handle, MPI_STATUS_IGNORE);
  matched.was_put_back = code == MPI_SUCCESS;
  return code == MPI_SUCCESS ? code : raise_on_communicator(matched.communicator, code);
}

/// Looks at a message that the library has matched.
int look_at(Messages& all, Matched& matched) {
  const bool may_be_header = matched.handle != MPI_MESSAGE_NO_PROC && has_headers_length(matched.status);
  return may_be_header ? put_back(all, matched) : MPI_SUCCESS;
}

void deliver(const MPI_Status& status, MPI_Status* wanted) noexcept {
  if (wanted != MPI_STATUS_IGNORE) assign_but_error(*wanted, status);
}

/// Stashes the message that MPI_Probe or MPI_Iprobe has found, if the message may be a header, with all that its source
/// has sent before. `is_there` becomes 0 if the message is not there any more.
int look_behind(Messages& all, MPI_Comm communicator, MPI_Status& found, int& is_there) {
  if (!has_headers_length(found)) return MPI_SUCCESS;
  for (;;) {
    Matched next;
    next.communicator = communicator;
    int code = native.Improbe(found.MPI_SOURCE, MPI_ANY_TAG, communicator, &is_there, &next.handle, &next.status);
    if (code != MPI_SUCCESS || is_there == 0) return code;
    code = look_at(all, next);
    if (code != MPI_SUCCESS) return code;
    next.number = ++all.last_number;
    all.stash.push_back(next);
    count_stash();
    if (next.status.MPI_TAG != found.MPI_TAG) continue;
    found = next.status;
    return MPI_SUCCESS;
  }
}

int no_memory(MPI_Comm communicator) noexcept { return raise_on_communicator(communicator, MPI_ERR_NO_MEM); }

/// Takes a message out of the stash. Precondition: this thread has locked the messages.
std::optional<Matched> take_out(int source, int tag, MPI_Comm communicator) noexcept {
  const auto found = find_stashed(source, tag, communicator);
  if (found == messages().stash.end()) return std::nullopt;
  Matched result = *found;
  messages().stash.erase(found);
  count_stash();
  return result;
}

/// The message of that handle, among those that the program has been given. Precondition: this thread has locked the
/// messages.
std::deque<Matched>::iterator find_in_given(MPI_Message handle) noexcept {
  return std::ranges::find_if(messages().given, [&](const Matched& each) { return each.handle == handle; });
}

/// Locks the messages where several threads call MPI. With one thread nothing is locked, because a handler that the
/// library calls may probe, or never return.
std::unique_lock<std::mutex> lock_among_threads() noexcept {
  return runtime::is_multithreaded() ? std::unique_lock(messages().mutex)
                                     : std::unique_lock(messages().mutex, std::defer_lock);
}

// No other thread stashes a message between the look at the stash and the library's answer: such a message would be
// older than the one that the library finds.

/// Finds a message by `ask(status, is_there)`, the library's function, unless one is stashed.
template <class Ask>
int probe_by(int source, int tag, MPI_Comm communicator, int& is_there, MPI_Status* wanted, Ask ask) noexcept {
  Messages& all = messages();
  is_there = 1;
  if (MPI_Status unfilled{}; is_refused_among_threads(source, tag, communicator)) return ask(unfilled, is_there);
  const Stashing stashing;
  const std::unique_lock lock = lock_among_threads();
  if (const auto stashed = find_stashed(source, tag, communicator); stashed != all.stash.end()) {
    deliver(stashed->status, wanted);
    return MPI_SUCCESS;
  }
  try {
    MPI_Status status{};
    int code = ask(status, is_there);
    if (code != MPI_SUCCESS || is_there == 0) return code;
    code = look_behind(all, communicator, status, is_there);
    if (code == MPI_SUCCESS && is_there != 0) deliver(status, wanted);
    return code;
  } catch (const std::exception&) {
    return no_memory(communicator);
  }
}

int probe_once(int source, int tag, MPI_Comm communicator, int& is_there, MPI_Status* wanted) noexcept {
  return probe_by(source, tag, communicator, is_there, wanted, [&](MPI_Status& status, int& found) {
    return native.Iprobe(source, tag, communicator, &found, &status);
  });
}

/// Asks until `ask(is_there)` has found a message. Another thread may stash the message that this thread waits for, and
/// the library would wait in vain. So where several threads call MPI, no thread waits inside the library.
template <class Ask>
int ask_until_there(Ask ask) noexcept {
  for (;;) {
    int is_there = 0;
    const int code = ask(is_there);
    if (code != MPI_SUCCESS || is_there != 0) return code;
    std::this_thread::yield();
  }
}

int probe(int source, int tag, MPI_Comm communicator, MPI_Status* wanted) {
  requests::start_deferred();
  if (!transfer::headers::is_listening()) return native.Probe(source, tag, communicator, wanted);
  const bool polls = runtime::is_multithreaded();
  const auto wait = [&](MPI_Status& status, int&) { return native.Probe(source, tag, communicator, &status); };
  return ask_until_there([&](int& found) {
    return polls ? probe_once(source, tag, communicator, found, wanted)
                 : probe_by(source, tag, communicator, found, wanted, wait);
  });
}

int probe_now(int source, int tag, MPI_Comm communicator, int* flag, MPI_Status* wanted) {
  requests::start_deferred();
  if (!transfer::headers::is_listening() || flag == nullptr)
    return native.Iprobe(source, tag, communicator, flag, wanted);
  return probe_once(source, tag, communicator, *flag, wanted);
}

/// Gives the program a matched message. The library tells enough of a message of its own, unless gapless may fail to
/// move the message into GPU memory: the error then goes to the message's communicator.
void hand_out(const Matched& matched, MPI_Message* message, MPI_Status* wanted) noexcept {
  if (matched.was_put_back || (device::in_use() && matched.handle != MPI_MESSAGE_NO_PROC)) give(matched);
  *message = matched.handle;
  deliver(matched.status, wanted);
}

/// Matches a message by `ask(matched, is_there)`, the library's function, unless one is stashed.
template <class Ask>
int match_by(int source, int tag, MPI_Comm communicator, int& is_there, MPI_Message* message, MPI_Status* wanted,
             Ask ask) noexcept {
  is_there = 1;
  if (Matched none; is_refused_among_threads(source, tag, communicator)) return ask(none, is_there);
  const Stashing stashing;
  std::unique_lock lock = lock_among_threads();
  try {
    std::optional<Matched> matched = take_out(source, tag, communicator);
    if (!matched) {
      matched.emplace().communicator = communicator;
      int code = ask(*matched, is_there);
      if (code == MPI_SUCCESS && is_there != 0) code = look_at(messages(), *matched);
      if (code != MPI_SUCCESS || is_there == 0) return code;
    }
    if (lock.owns_lock()) lock.unlock();
    hand_out(*matched, message, wanted);
    return MPI_SUCCESS;
  } catch (const std::exception&) {
    return no_memory(communicator);
  }
}

int match_once(int source, int tag, MPI_Comm communicator, int& is_there, MPI_Message* message,
               MPI_Status* wanted) noexcept {
  return match_by(source, tag, communicator, is_there, message, wanted, [&](Matched& matched, int& found) {
    return native.Improbe(source, tag, communicator, &found, &matched.handle, &matched.status);
  });
}

int match(int source, int tag, MPI_Comm communicator, MPI_Message* message, MPI_Status* wanted) {
  requests::start_deferred();
  if (!transfer::headers::is_listening() || message == nullptr)
    return native.Mprobe(source, tag, communicator, message, wanted);
  if (runtime::is_multithreaded())
    return ask_until_there([&](int& found) { return match_once(source, tag, communicator, found, message, wanted); });
  int is_there = 1;
  return match_by(source, tag, communicator, is_there, message, wanted, [&](Matched& matched, int&) {
    return native.Mprobe(source, tag, communicator, &matched.handle, &matched.status);
  });
}

int match_now(int source, int tag, MPI_Comm communicator, int* flag, MPI_Message* message, MPI_Status* wanted) {
  requests::start_deferred();
  if (!transfer::headers::is_listening() || flag == nullptr || message == nullptr)
    return native.Improbe(source, tag, communicator, flag, message, wanted);
  return match_once(source, tag, communicator, *flag, message, wanted);
}

}  // namespace

bool is_refused_among_threads(int source, int tag, MPI_Comm communicator) noexcept {
  if (!runtime::is_multithreaded()) return false;
  if (communicator == MPI_COMM_NULL || (tag < 0 && tag != MPI_ANY_TAG)) return true;
  return source != MPI_ANY_SOURCE && source != MPI_PROC_NULL &&
         (source < 0 || source >= count_entries(communicator, CountsOf::processes));
}

std::optional<Matched> take_stashed(int source, int tag, MPI_Comm communicator) noexcept {
  if (!are_stashed()) return std::nullopt;
  const std::lock_guard lock(messages().mutex);
  return take_out(source, tag, communicator);
}

void give(const Matched& matched) noexcept {
  try {
    const std::lock_guard lock(messages().mutex);
    messages().given.push_back(matched);
    count_given();
  } catch (const std::exception&) {
  }
}

std::optional<Matched> take_given(MPI_Message handle) noexcept {
  if (!are_given()) return std::nullopt;
  const std::lock_guard lock(messages().mutex);
  const auto found = find_in_given(handle);
  if (found == messages().given.end()) return std::nullopt;
  const Matched result = *found;
  messages().given.erase(found);
  count_given();
  return result;
}

std::optional<Matched> find_given(MPI_Message handle) noexcept {
  if (!are_given()) return std::nullopt;
  const std::lock_guard lock(messages().mutex);
  const auto found = find_in_given(handle);
  return found == messages().given.end() ? std::nullopt : std::optional(*found);
}

void stash_again(const Matched& matched) noexcept {
  try {
    const std::lock_guard lock(messages().mutex);
    auto& given = messages().given;
    auto& stash = messages().stash;
    const auto found = std::ranges::find_if(
        given, [&](const Matched& each) { return each.handle == matched.handle && each.number == matched.number; });
    if (found == given.end()) return;
    Matched again = *found;
    again.was_stashed = false;
    given.erase(found);
    count_given();
    // In the order in which the library has matched them.
    stash.insert(std::ranges::find_if(stash, [&](const Matched& each) { return each.number > again.number; }), again);
    count_stash();
  } catch (const std::exception&) {
  }
}

void look_for_lost_slots() noexcept {
  // Another thread's receive may be complete in the library, with its message still to be fetched.
  if (runtime::is_multithreaded() || !requests::are_none() || are_stashed() || are_given()) return;
  transfer::headers::take_back_lost_slots(transfer::headers::own_inbox().head());
}

std::uint64_t last_stashed() noexcept {
  const std::lock_guard lock(messages().mutex);
  return messages().last_number;
}

void forget_messages(MPI_Comm communicator, std::uint64_t last_number) noexcept {
  const std::lock_guard lock(messages().mutex);
  std::erase_if(messages().stash,
                [&](const Matched& each) { return each.communicator == communicator && each.number <= last_number; });
  count_stash();
}

}  // namespace gapless::mpi::headers

std::uint64_t gapless_messages_given() {
  return gapless::mpi::headers::internal::given.load(std::memory_order_relaxed);
}

namespace gapless::mpi::entry {

const decltype(Native::Probe) Probe = headers::probe;
const decltype(Native::Iprobe) Iprobe = headers::probe_now;
const decltype(Native::Mprobe) Mprobe = headers::match;
const decltype(Native::Improbe) Improbe = headers::match_now;

}  // namespace gapless::mpi::entry
