#include "mpi/requests/receives/looked_at.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "mpi/requests/outstanding.hpp"
#include "transfer/headers/attention.hpp"
#include "transfer/packing.hpp"

namespace gapless::mpi::requests::looked_at {

constinit std::array<internal::Set, std::size_t{1} << internal::set_bits> internal::table{};
constinit std::size_t internal::used = 0;
constinit int internal::calls_under_way = 0;

namespace {

constexpr const char* function = "MPI_Irecv";
constinit std::uint64_t so_far = 0, promoted = 0;
constinit std::size_t unattended = 0;                     ///< under way
constinit transfer::headers::Unattended counted_for_all;  ///< while any is

template <class Function>
void for_each(Function function) noexcept {
  for (internal::Set& set : internal::table) {
    for (Receive& each : set) {
      if (!each.is_free()) function(each);
    }
  }
}

bool are_ignored(const MPI_Status* statuses) noexcept { return statuses == MPI_STATUSES_IGNORE || statuses == nullptr; }

/// Frees the place.
void forget(Receive& place) noexcept {
  place.landing = nullptr;
  --internal::used;
  count_outstanding(-1);
}

/// Takes a complete receive out of the table.
Receive remove(Receive& place) noexcept {
  const Receive receive = place;
  if (receive.is_unattended) end_unattended();
  forget(place);
  return receive;
}

UserBuffer buffer_of(const Receive& receive) noexcept {
  const Blocks& blocks = *receive.blocks;
  const auto& description = blocks.kept != nullptr ? blocks.kept : type_cache::find(receive.datatype)->described;
  return {.buffer = {blocks.described, receive.count, receive.memory, {}}, .description = description};
}

[[gnu::noinline]] bool has_scattered_header(const Receive& receive) noexcept {
  std::array<std::byte, transfer::headers::Header::size> bytes;
  const bool is_there = transfer::gather(buffer_of(receive).buffer, bytes) == transfer::Result::ok &&
                        transfer::headers::is_header(bytes.data(), bytes.size());
  transfer::headers::wipe(bytes.data());
  return is_there;
}

bool has_header(const Receive& receive) noexcept {
  if (receive.is_unattended) return false;
  const Blocks* const blocks = receive.blocks;
  if (blocks == nullptr) return transfer::headers::is_header(receive.landing, transfer::headers::Header::size);
  const bool is_there =
      transfer::headers::begins_header(receive.landing, blocks->bytes_there) && has_scattered_header(receive);
  Scattered::note(is_there);
  return is_there;
}

/// Makes a side that ends the receive as a pending message's side would, by `make(arguments of a side)`, and releases
/// the blocks of the receive.
template <class Make>
Receiving<MPI_Count>& make_side(const Receive& receive, Make make) noexcept {
  Receiving<MPI_Count>& side = make(receive.memory, receive.count, receive.datatype, receive.blocks != nullptr);
  if (receive.blocks != nullptr) {
    side.goes_on_scattered(buffer_of(receive), std::move(receive.blocks->place));
    release(receive.blocks);
  }
  return side;
}

/// Fetches the message of a header that has landed. MPI_SUCCESS, or the error, raised by `raise`.
template <class Raise>
[[gnu::noinline]] int fetch(const Receive& receive, MPI_Status* wanted, Raise raise) noexcept {
  std::optional<Receiving<MPI_Count>> in;
  make_side(
      receive, [&in](auto... arguments) -> auto& { return in.emplace(arguments...); });
  const bool is_wanted = wanted != MPI_STATUS_IGNORE && wanted != nullptr;
  MPI_Status filled{};
  if (is_wanted) filled = *wanted;
  ReceivedStatus status(filled, is_wanted ? wanted : nullptr);
  status.set_bytes(transfer::headers::Header::size);
  return in->finish_call(status, MPI_SUCCESS, function, raise);
}

/// The library has completed a receive that remove() has taken out of the table: fetches the message if a header has
/// come. `is_good`: the receive has no error.
template <class Raise>
int finish(const Receive& receive, bool is_good, MPI_Status* wanted, Raise raise) noexcept {
  if (is_good && has_header(receive)) return fetch(receive, wanted, raise);
  if (receive.blocks != nullptr) release(receive.blocks);
  return MPI_SUCCESS;
}

int finish_alone(const Receive& receive, int code, MPI_Status* wanted) noexcept {
  const auto raise = [&](int error) { return raise_on(ErrorObject::of_communicator(receive.communicator), error); };
  const int ours = finish(receive, code == MPI_SUCCESS, wanted, raise);
  return code == MPI_SUCCESS ? ours : code;
}

bool make_pending(const Receive& receive) noexcept {
  Pending* pending = requests::acquire();
  if (pending == nullptr) return false;
  const auto make = [pending](auto... arguments) -> auto& { return pending->make<Receiving<MPI_Count>>(arguments...); };
  Receiving<MPI_Count>& side =
      receive.is_unattended ? make(nullptr, MPI_Count{0}, MPI_BYTE, true) : make_side(receive, make);
  if (receive.is_unattended) {
    side.goes_on_unattended();
    end_unattended();
  }
  int code = MPI_SUCCESS;
  static_cast<void>(side.prepare(function, code));  // asks for no memory, so does not fail
  pending->function = function;
  pending->error_object = ErrorObject::of_communicator(receive.communicator);
  requests::add(pending, receive.handle);
  return true;
}

// Never destroyed: requests may be completed while the process ends.
constinit Blocks* unused = nullptr;

}  // namespace

bool begin_unattended() noexcept {
  if (unattended != 0 ? transfer::headers::is_called() : !counted_for_all.begin()) return false;
  ++unattended;
  return true;
}

void end_unattended() noexcept {
  if (--unattended == 0) counted_for_all.end();
}

Blocks* acquire(const TypeRecord& record, const void* landing) noexcept {
  Blocks* blocks = unused;
  if (blocks == nullptr) blocks = unused = new (std::nothrow) Blocks;
  if (blocks == nullptr || !blocks->place.begin(landing)) return nullptr;
  unused = blocks->next;
  blocks->described = record.described.get();
  blocks->bytes_there = record.bytes_of_scattered_header;
  return blocks;
}

void release(Blocks* blocks) noexcept {
  blocks->place.end();
  blocks->kept.reset();
  blocks->next = std::exchange(unused, blocks);
}

int add(const Receive& receive) noexcept {
  for (Receive& place : set_of(receive.handle)) {
    if (!place.is_free()) continue;
    place = receive;
    place.made_at = so_far;
    ++internal::used;
    ++so_far;
    count_outstanding(1);
    return MPI_SUCCESS;
  }
  if (make_pending(receive)) return MPI_SUCCESS;
  if (receive.blocks != nullptr) release(receive.blocks);
  if (receive.is_unattended) end_unattended();
  return MPI_ERR_NO_MEM;
}

void promote(MPI_Request handle) noexcept {
  Receive* const found = find(handle);
  if (found == nullptr || !make_pending(*found)) return;
  forget(*found);
  ++promoted;
}

void promote_all() noexcept {
  for_each([](Receive& each) { promote(each.handle); });
}

void forget_left() noexcept {
  for_each([](Receive& place) {
    if (!place.is_held) return;
    const Receive left = remove(place);
    if (left.blocks != nullptr) release(left.blocks);
  });
}

void outlive(MPI_Datatype datatype, const TypeRecord& record) noexcept {
  if (!are_any()) return;
  for_each([&](Receive& each) {
    if (each.is_unattended || each.datatype != datatype) return;
    if (each.blocks != nullptr) {
      each.blocks->kept = record.described;
      return;
    }
    each.memory = const_cast<void*>(each.landing);
    each.count = static_cast<MPI_Count>(each.count * record.size);
    each.datatype = MPI_BYTE;
  });
}

int wait(Receive& receive, MPI_Request* request, MPI_Status* status) noexcept {
  const int code = [&] {
    const Held held(receive);
    return native.Wait(request, status);
  }();
  if (code != MPI_SUCCESS && *request != MPI_REQUEST_NULL) return code;
  return finish_alone(remove(receive), code, status);
}

int test(Receive& receive, MPI_Request* request, int* flag, MPI_Status* status) noexcept {
  const int code = [&] {
    const Held held(receive);
    return native.Test(request, flag, status);
  }();
  if (*request != MPI_REQUEST_NULL) return code;
  return finish_alone(remove(receive), code, status);
}

namespace {

/// The list of requests of a call, as it is before the library completes some of them.
struct List {
  const void* frame = nullptr;  ///< of the call
  MPI_Request* requests = nullptr;
  int count = 0, room = 0;
  std::uint64_t begun_at = 0;  ///< receives that were made before are older than the call

  bool reserve(int wanted) noexcept {
    if (wanted <= room) return true;
    auto* const larger = new (std::nothrow) MPI_Request[static_cast<std::size_t>(wanted)];
    if (larger == nullptr) return false;
    delete[] std::exchange(requests, larger);
    room = wanted;
    return true;
  }
  bool has(const Receive& receive) const noexcept {
    return receive.made_at < begun_at && std::find(requests, requests + count, receive.handle) != requests + count;
  }
};

// Of calls within one another's error handlers. Kept, so that no call allocates memory twice.
constexpr int most_calls = 8;
constinit std::array<List, most_calls> lists{};

/// An error handler that has left its call by longjmp has left the call's list: the stack has gone back behind its
/// frame.
void drop_lists_below(const void* frame) noexcept {
  int& calls = internal::calls_under_way;
  while (calls > 0 && !std::less<>{}(frame, lists[static_cast<std::size_t>(calls - 1)].frame)) --calls;
}

/// The requests of one call that completes some of them. A call that finds nothing complete pays for a copy of the
/// list. While the object lives, the receives among them are hidden from find(), as by Held.
class Several {
 public:
  Several(int count, const MPI_Request* requests) noexcept;
  ~Several() { release(); }
  Several(const Several&) = delete;
  Several& operator=(const Several&) = delete;

  /// Is there memory for the list? If not, the call may complete nothing.
  bool have_memory() const noexcept { return list_ != nullptr; }

  /// The library's call has ended with `code`; status number k of the `completed` ones is that of request index_of(k).
  /// Ends the receives among those, and returns what the program's call returns.
  template <class IndexOf>
  int end(int completed, IndexOf index_of, MPI_Status* statuses, int code) noexcept;
  /// The same for a call that completes one request.
  int end_one(int index, MPI_Status* status, int code) noexcept;

 private:
  /// The receive that request `i` was, if the library has completed the request; else null.
  Receive* completed(int i) noexcept;

  /// The receives that are not complete may be found again, by an error handler above all. Drops the lists of calls
  /// within this one, too, which longjmp has left.
  void release() noexcept {
    if (List* const list = std::exchange(list_, nullptr))
      internal::calls_under_way = static_cast<int>(list - lists.data());
  }

  List* list_ = nullptr;
  int count_;
  const MPI_Request* requests_;  ///< as they are now
};

Several::Several(int count, const MPI_Request* requests) noexcept : count_(count), requests_(requests) {
  const void* const frame = __builtin_frame_address(0);
  drop_lists_below(frame);
  if (internal::calls_under_way == most_calls) return;
  List& list = lists[static_cast<std::size_t>(internal::calls_under_way)];
  if (!list.reserve(count)) return;
  std::copy_n(requests, count, list.requests);
  list.frame = frame;
  list.count = count;
  list.begun_at = so_far;
  list_ = &list;
  ++internal::calls_under_way;
}

Receive* Several::completed(int i) noexcept {
  const MPI_Request before = list_->requests[i];
  if (before == MPI_REQUEST_NULL || requests_[i] != MPI_REQUEST_NULL) return nullptr;
  for (Receive& place : set_of(before)) {
    const bool is_older = place.made_at < list_->begun_at;
    if (!place.is_free() && place.handle == before && !place.is_held && is_older) return &place;
  }
  return nullptr;
}

template <class IndexOf>
int Several::end(int completed, IndexOf index_of, MPI_Status* statuses, int code) noexcept {
  const bool are_wanted = !are_ignored(statuses);
  int first = MPI_SUCCESS;
  MPI_Comm told = MPI_COMM_NULL;
  for (int k = 0; k < completed; ++k) {
    Receive* const place = this->completed(index_of(k));
    if (place == nullptr) continue;
    const Receive receive = remove(*place);
    // A receive that has failed has no header.
    const int ours =
        finish(receive, true, are_wanted ? statuses + k : MPI_STATUS_IGNORE, [](int error) { return error; });
    if (ours == MPI_SUCCESS) continue;
    for (int i = 0; first == MPI_SUCCESS && code == MPI_SUCCESS && are_wanted && i < completed; ++i)
      statuses[i].MPI_ERROR = MPI_SUCCESS;
    if (first == MPI_SUCCESS) {
      first = ours;
      told = names_no_communicator(ours) ? told_of_no_communicator() : receive.communicator;
    }
    if (are_wanted) statuses[k].MPI_ERROR = ours;
  }
  if (first == MPI_SUCCESS || code != MPI_SUCCESS) return code;
  release();
  return raise_on(ErrorObject::of_communicator(told), MPI_ERR_IN_STATUS);
}

int Several::end_one(int index, MPI_Status* status, int code) noexcept {
  // After an error the library need not have set the index.
  if (code != MPI_SUCCESS)
    return end(
        count_, [](int k) { return k; }, MPI_STATUSES_IGNORE, code);
  if (index == MPI_UNDEFINED) return code;
  Receive* const place = completed(index);
  release();
  return place == nullptr ? code : finish_alone(remove(*place), code, status);
}

}  // namespace

bool internal::is_under_way(const Receive& receive) noexcept {
  return std::any_of(lists.begin(), lists.begin() + calls_under_way,
                     [&receive](const List& list) { return list.has(receive); });
}

bool can_serve(int count, const MPI_Request* requests) noexcept {
  const bool are_all = how_many() == internal::used && requests != nullptr && count >= 0;
  return are_any() && (are_all || (count >= 0 && are_native(count, requests)));
}

int wait_all(int count, MPI_Request* requests, MPI_Status* statuses) noexcept {
  Several several(count, requests);
  if (!several.have_memory()) return raise_without_object(MPI_ERR_NO_MEM);
  return several.end(
      count, [](int k) { return k; }, statuses, native.Waitall(count, requests, statuses));
}

int test_all(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) noexcept {
  Several several(count, requests);
  if (!several.have_memory()) return raise_without_object(MPI_ERR_NO_MEM);
  const int code = native.Testall(count, requests, flag, statuses);
  if (flag == nullptr || (code == MPI_SUCCESS && *flag == 0)) return code;
  return several.end(
      count, [](int k) { return k; }, statuses, code);
}

int wait_any(int count, MPI_Request* requests, int* index, MPI_Status* status) noexcept {
  Several several(count, requests);
  if (!several.have_memory()) return raise_without_object(MPI_ERR_NO_MEM);
  const int code = native.Waitany(count, requests, index, status);
  return index == nullptr ? code : several.end_one(*index, status, code);
}

int test_any(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) noexcept {
  Several several(count, requests);
  if (!several.have_memory()) return raise_without_object(MPI_ERR_NO_MEM);
  const int code = native.Testany(count, requests, index, flag, status);
  if (index == nullptr || flag == nullptr || (code == MPI_SUCCESS && *flag == 0)) return code;
  return several.end_one(*index, status, code);
}

namespace {

template <auto function>
int complete_some(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) noexcept {
  Several several(count, requests);
  if (!several.have_memory()) return raise_without_object(MPI_ERR_NO_MEM);
  const int code = (native.*function)(count, requests, completed, indices, statuses);
  if (completed == nullptr || indices == nullptr || (code != MPI_SUCCESS && !tells_in_statuses(code))) return code;
  const int number = *completed == MPI_UNDEFINED ? 0 : *completed;
  return several.end(
      number, [indices](int k) { return indices[k]; }, statuses, code);
}

}  // namespace

int wait_some(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) noexcept {
  return complete_some<&Native::Waitsome>(count, requests, completed, indices, statuses);
}

int test_some(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) noexcept {
  return complete_some<&Native::Testsome>(count, requests, completed, indices, statuses);
}

void InPlace::end(const MPI_Request* requests, MPI_Status* statuses) noexcept {
  for (int k = 0; k < count_; ++k) {
    One& one = all_[static_cast<std::size_t>(k)];
    one.place->is_held = false;
    // A failed receive has no header, and a receive that is not complete stays.
    if (requests[one.index] != MPI_REQUEST_NULL) continue;
    MPI_Status* const status = are_ignored(statuses) ? MPI_STATUS_IGNORE : statuses + one.index;
    one.code = finish(remove(*one.place), true, status, [](int error) { return error; });
  }
}

int InPlace::add_errors(MPI_Status* statuses, int count, int code) const noexcept {
  const One* first = nullptr;
  for (int k = 0; k < count_; ++k) {
    const One& one = all_[static_cast<std::size_t>(k)];
    if (one.code == MPI_SUCCESS) continue;
    for (int i = 0; first == nullptr && code == MPI_SUCCESS && !are_ignored(statuses) && i < count; ++i)
      statuses[i].MPI_ERROR = MPI_SUCCESS;
    if (first == nullptr) first = &one;
    if (!are_ignored(statuses)) statuses[one.index].MPI_ERROR = one.code;
  }
  if (first == nullptr || code != MPI_SUCCESS) return code;
  const MPI_Comm told = names_no_communicator(first->code) ? told_of_no_communicator() : first->communicator;
  return raise_on(ErrorObject::of_communicator(told), MPI_ERR_IN_STATUS);
}

}  // namespace gapless::mpi::requests::looked_at

std::uint64_t gapless_receives_looked_at() { return gapless::mpi::requests::looked_at::so_far; }
std::uint64_t gapless_receives_promoted() { return gapless::mpi::requests::looked_at::promoted; }
