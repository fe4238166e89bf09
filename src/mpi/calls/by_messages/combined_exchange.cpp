#include "mpi/calls/by_messages/combined_exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "layout/layout.hpp"
#include "mpi/calls/by_library.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/native.hpp"
#include "transfer/blocking.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/packing.hpp"
#include "transfer/parts.hpp"
#include "transfer/pulls/combined.hpp"
#include "transfer/report/report.hpp"

namespace gapless::mpi::by_messages {
namespace {

using transfer::Buffer;
using transfer::Result;
using transfer::pulls::CombinedFetch;
using transfer::pulls::CombinedOffer;

constexpr int tag = 1;  ///< of descriptions

/// The parts of one side that one peer has at the other end.
struct Group {
  int peer;
  std::size_t first, count;
};

/// One side's parts that are not empty, grouped by peer.
class PartsByPeer {
 public:
  /// Groups the parts, beginning with the peer that is this process itself, so that not all ranks send to one rank at
  /// first. MPI_SUCCESS, or the program's mistake.
  int look_at(const PartsOfSide& side, int own, int ranks, device::Locator& locator) {
    std::vector<std::size_t> order;
    order.reserve(side.size());
    for (std::size_t k = 0; k < side.size(); ++k) {
      if (side.peers[k] != MPI_PROC_NULL && side.parts[k].count != 0) order.push_back(k);
    }
    const auto distance = [&](std::size_t k) { return (side.peers[k] - own + ranks) % ranks; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return distance(a) < distance(b); });
    users_.reserve(order.size());
    buffers_.reserve(order.size());
    for (const std::size_t k : order) {
      const Part& part = side.parts[k];
      UserBuffer user = identify(part.memory, part.count, part.datatype, Purpose::message, Analysis::now, &locator);
      if (!user.is_described()) {
        if (const int code = mistake_in(part, user); code != MPI_SUCCESS) return code;
        if (is_empty(part)) continue;
      }
      if (groups_.empty() || groups_.back().peer != side.peers[k]) groups_.push_back({side.peers[k], users_.size(), 0});
      ++groups_.back().count;
      buffers_.push_back(user.buffer);
      users_.push_back(std::move(user));
      parts_.push_back(&part);
    }
    return MPI_SUCCESS;
  }

  const std::vector<Group>& groups() const noexcept { return groups_; }
  const Group* group_of(int peer) const noexcept {
    const auto found = std::ranges::find(groups_, peer, &Group::peer);
    return found != groups_.end() ? &*found : nullptr;
  }
  std::span<const Buffer> buffers(const Group& group) const noexcept {
    return std::span(buffers_).subspan(group.first, group.count);
  }
  bool are_described(const Group& group) const noexcept {
    return std::ranges::all_of(buffers(group), [](const Buffer& buffer) { return buffer.type != nullptr; });
  }
  const UserBuffer& user(std::size_t i) const noexcept { return users_[i]; }
  const Part& part(std::size_t i) const noexcept { return *parts_[i]; }

 private:
  std::vector<Group> groups_;
  std::vector<UserBuffer> users_;
  std::vector<Buffer> buffers_;
  std::vector<const Part*> parts_;
};

struct SentParts {
  const Group* group;
  CombinedOffer offer;
  std::vector<std::byte> description;  ///< empty: the parts are messages of their own
  bool is_combined = false;
  bool is_announced = false;  ///< the description, or an empty one, has been sent
};

struct ReceivedParts {
  const Group* group;
  CombinedFetch fetch;
  std::unique_ptr<std::byte[]> description;
  std::size_t bytes = 0;  ///< of the description; 0: the parts are messages of their own
};

class CombinedExchange {
 public:
  /// Throws std::bad_alloc.
  CombinedExchange(const char* function, MPI_Comm lane, Messages& messages)
      : function_(function), lane_(lane), messages_(messages) {}

  /// Gets all memory, before any other process counts on this one. MPI_SUCCESS, or the program's mistake. Throws
  /// std::bad_alloc.
  int prepare(const PartsOfSide& sent, const PartsOfSide& received) {
    int ranks = 1;
    native.Comm_rank(lane_, &own_);
    native.Comm_size(lane_, &ranks);
    device::Locator locator;
    if (const int code = out_.look_at(sent, own_, ranks, locator); code != MPI_SUCCESS) return code;
    if (const int code = in_.look_at(received, own_, ranks, locator); code != MPI_SUCCESS) return code;
    prepare_to_receive();
    prepare_to_send();
    requests_.resize(incoming_.size() + outgoing_.size(), MPI_REQUEST_NULL);
    has_own_jobs_ = copy_own();
    return MPI_SUCCESS;
  }
  /// Ends an exchange that could not be prepared, of which no other process hears.
  void withdraw() noexcept {
    for (SentParts& each : outgoing_) each.offer.withdraw();
  }
  /// Makes the exchange. Precondition: prepare() has succeeded.
  int run(Unmapped& unmapped) noexcept {
    const bool are_refused = is_any_refused_ && std::ranges::none_of(outgoing_, &SentParts::is_combined);
    if (are_refused) {
      ++unmapped.in_a_row;
      ++unmapped.in_all;
    } else if (!outgoing_.empty()) {
      unmapped.in_a_row = 0;
    }
    note(post());
    offer();
    note(receive_descriptions());
    fetch();
    note(messages_.finish());
    wait_for_receivers();
    return code_;
  }

 private:
  void note(int code) noexcept {
    if (code_ == MPI_SUCCESS) code_ = code;
  }
  void note(Result result) noexcept {
    if (result != Result::ok) note(transfer_failure(function_, result));
  }

  void prepare_to_receive() {
    for (const Group& group : in_.groups()) {
      if (group.peer == own_) continue;
      ReceivedParts& each = incoming_.emplace_back();
      each.group = &group;
      each.bytes = transfer::pulls::longest_description(group.count);
      each.description = std::make_unique_for_overwrite<std::byte[]>(each.bytes);
      std::memset(each.description.get(), 0xFF, each.bytes);  // names no sender
    }
  }
  void prepare_to_send() {
    for (const Group& group : out_.groups()) {
      if (group.peer == own_) continue;
      SentParts& each = outgoing_.emplace_back();
      each.group = &group;
      transfer::headers::Inbox* const inbox = transfer::headers::find_inbox(headers::find_peer(lane_, group.peer).rank);
      if (inbox == nullptr || inbox->is_remote() || !out_.are_described(group)) continue;
      each.is_combined = each.offer.secure(out_.buffers(group), *inbox, each.description);
      if (each.is_combined) continue;
      each.description.clear();
      is_any_refused_ |= std::ranges::all_of(out_.buffers(group), [](const Buffer& buffer) {
        return !buffer.location.is_cpu_addressable() && transfer::pulls::may_be_pulled(buffer);
      });
    }
  }

  /// Makes jobs of what this process exchanges with itself. False if that goes by messages.
  bool copy_own() {
    const Group *const out = out_.group_of(own_), *const in = in_.group_of(own_);
    if (out == nullptr && in == nullptr) return true;
    if (out == nullptr || in == nullptr || out->count != in->count) return false;
    if (!out_.are_described(*out) || !in_.are_described(*in)) return false;
    const auto from = out_.buffers(*out), into = in_.buffers(*in);
    const bool is_on_host = into.front().location.is_cpu_addressable();
    const int device = into.front().location.device;
    const auto is_there = [&](const device::Location& location) {
      return is_on_host ? location.is_cpu_addressable() : location.is_gpu_addressable(device);
    };
    for (std::size_t k = 0; k < from.size(); ++k) {
      const bool can_be_copied = is_there(from[k].location) && is_there(into[k].location);
      if (!can_be_copied || from[k].size() != into[k].size()) return false;
    }
    for (std::size_t k = 0; is_on_host && k < from.size(); ++k) note(transfer::copy_on_host(from[k], into[k]));
    for (std::size_t k = 0; !is_on_host && k < from.size(); ++k) {
      transfer::record_moved(into[k], transfer::Side::receiver, transfer::Scheme::direct);
      jobs_.push_back(transfer::copying(from[k], into[k]));
    }
    device_ = device;
    return true;
  }

  /// Begins to receive descriptions, and sends this process's descriptions and all parts that are messages of their
  /// own. After a failure nothing more is begun.
  int post() noexcept {
    std::size_t k = 0;
    for (ReceivedParts& each : incoming_) {
      const int code = native.Irecv(each.description.get(), static_cast<int>(each.bytes), MPI_BYTE, each.group->peer,
                                    tag, lane_, &requests_[k]);
      if (code != MPI_SUCCESS) return requests_[k] = MPI_REQUEST_NULL, code;
      ++k;
    }
    for (SentParts& each : outgoing_) {
      const int code = native.Isend(each.description.data(), static_cast<int>(each.description.size()), MPI_BYTE,
                                    each.group->peer, tag, lane_, &requests_[k]);
      if (code != MPI_SUCCESS) return requests_[k] = MPI_REQUEST_NULL, code;
      ++k;
      each.is_announced = true;
      if (!each.is_combined) send(*each.group);
    }
    if (!has_own_jobs_) {
      if (const Group* const group = in_.group_of(own_)) receive(*group);
      if (const Group* const group = out_.group_of(own_)) send(*group);
    }
    requests::start_deferred();
    return MPI_SUCCESS;
  }
  // All parts are sent or received, also behind one that fails: the other end waits for them.
  void send(const Group& group) noexcept {
    for (std::size_t k = 0; k < group.count; ++k) note(messages_.send(out_.part(group.first + k), group.peer));
  }
  void receive(const Group& group) noexcept {
    for (std::size_t k = 0; k < group.count; ++k) note(messages_.receive(in_.part(group.first + k), group.peer));
  }

  /// Offers the parts whose descriptions are under way. Descriptions travel while the default stream is asked.
  void offer() noexcept {
    int device = -1;
    Result result = Result::ok;
    for (SentParts& each : outgoing_) {
      if (!each.is_combined) continue;
      if (!each.is_announced) {  // no receiver hears of these parts
        each.offer.withdraw();
        each.is_combined = false;
        continue;
      }
      if (each.offer.device() != device) result = transfer::wait_for_default_stream(each.offer.device());
      device = each.offer.device();
      result == Result::ok ? each.offer.offer() : each.offer.fail();
    }
  }

  /// Waits for each description alone: errors then go to the handler of the lane, which returns them.
  int receive_descriptions() noexcept {
    int first_code = MPI_SUCCESS;
    for (std::size_t k = 0; k < requests_.size(); ++k) {
      if (requests_[k] == MPI_REQUEST_NULL) continue;
      MPI_Status status;
      const int code = native.Wait(&requests_[k], &status);
      if (first_code == MPI_SUCCESS) first_code = code;
      // A description that is too long has more parts than this process receives. fetch() reads its beginning, and
      // releases the sender.
      if (code != MPI_SUCCESS || k >= incoming_.size()) continue;
      ReceivedParts& each = incoming_[k];
      MPI_Count bytes = 0;
      native.Get_elements_x(&status, MPI_BYTE, &bytes);
      each.bytes = static_cast<std::size_t>(bytes);
      if (bytes == 0) receive(*each.group);
    }
    return first_code;
  }

  void fetch() noexcept {
    if (code_ != MPI_SUCCESS) jobs_.clear();  // no half result of what this process exchanges with itself
    for (ReceivedParts& each : incoming_) {
      if (each.bytes != 0) fetch(each);
    }
    run_jobs();
    for (ReceivedParts& each : incoming_) each.fetch.end();
  }
  void fetch(ReceivedParts& each) noexcept try {
    Result result = each.fetch.read({each.description.get(), each.bytes}, each.group->count);
    if (result == Result::ok) result = wait_for([&] { return each.fetch.poll(); });
    note(result);
    for (std::size_t k = 0; result == Result::ok && k < each.group->count; ++k) note(copy(each, k));
  } catch (const std::exception&) {  // the senders have still to hear that this process needs no part
    note(MPI_ERR_NO_MEM);
  }

  /// MPI_SUCCESS, or the error that is to be raised.
  int copy(ReceivedParts& each, std::size_t k) {
    const UserBuffer& user = in_.user(each.group->first + k);
    const Part& part = in_.part(each.group->first + k);
    const int device = user.is_gpu_memory() ? user.buffer.location.device : transfer::headers::accepting_device();
    if (device != device_) run_jobs();  // before mappings for that GPU end
    device_ = device;
    const layout::Offset bytes = each.fetch.size_of(k, device);
    const layout::Offset room = user.is_described() ? user.buffer.size() : runtime::size_of(part.datatype) * part.count;
    if (bytes < 0) return peer_failure();
    if (bytes > room) return truncated_message();
    if (user.is_gpu_memory() && !user.is_described()) return unserved_gpu_memory(function_, device);
    if (!user.is_gpu_memory()) return copy_to_host(each, k, static_cast<std::size_t>(bytes));
    const Result result = each.fetch.copy(k, user.buffer, jobs_);
    return result == Result::ok ? MPI_SUCCESS : transfer_failure(function_, result);
  }
  int copy_to_host(ReceivedParts& each, std::size_t k, std::size_t bytes) {
    const std::unique_ptr<std::byte[]> packed(new (std::nothrow) std::byte[bytes]);
    if (packed == nullptr) return MPI_ERR_NO_MEM;
    Result result = each.fetch.copy(k, packed.get());
    const UserBuffer& user = in_.user(each.group->first + k);
    const Part& part = in_.part(each.group->first + k);
    if (result == Result::ok && !user.is_described())
      return by_library::unpack(packed.get(), bytes, const_cast<void*>(part.memory), part.datatype);
    if (result == Result::ok) {
      result = transfer::move_range(pack::Direction::unpack, user.buffer, 0, static_cast<layout::Offset>(bytes),
                                    packed.get(), {});
    }
    return result == Result::ok ? MPI_SUCCESS : transfer_failure(function_, result);
  }
  void run_jobs() noexcept {
    if (!jobs_.empty()) note(transfer::run_on_gpu(jobs_, device_));
    jobs_.clear();
  }

  void wait_for_receivers() noexcept {
    for (SentParts& each : outgoing_) {
      if (each.is_combined) note(wait_for([&] { return each.offer.poll(); }));
    }
  }
  /// Polls, and has the library make progress meanwhile: other ranks may wait for messages that the library has still
  /// to send.
  template <class Poll>
  static Result wait_for(Poll poll) noexcept {
    Result result = Result::under_way;
    runtime::make_progress_until([&] { return (result = poll()) != Result::under_way; });
    return result;
  }

  const char* function_;
  MPI_Comm lane_;
  int own_ = 0;
  int code_ = MPI_SUCCESS;
  PartsByPeer out_, in_;
  std::deque<SentParts> outgoing_;
  std::deque<ReceivedParts> incoming_;
  std::vector<MPI_Request> requests_;  ///< of descriptions: first received, then sent ones
  std::vector<pack::PairJob> jobs_;    ///< all of one GPU
  int device_ = -1;
  bool has_own_jobs_ = false;
  bool is_any_refused_ = false;  ///< parts of a peer that could have been read in one pass
  Messages& messages_;
};

bool is_nothing(const PartsOfSide& side, std::size_t k) noexcept {
  return side.peers[k] == MPI_PROC_NULL || is_empty(side.parts[k]);
}
/// Is part k the first of its peer that is not nothing?
bool is_first_of_peer(const PartsOfSide& side, std::size_t k) noexcept {
  for (std::size_t j = 0; j < k; ++j) {
    if (side.peers[j] == side.peers[k] && !is_nothing(side, j)) return false;
  }
  return true;
}

/// Sends an empty description: parts follow as messages.
void send_no_description(MPI_Comm lane, int peer) noexcept {
  MPI_Request request;
  if (native.Isend(nullptr, 0, MPI_BYTE, peer, tag, lane, &request) == MPI_SUCCESS) native.Request_free(&request);
}
/// Receives a description, and releases its sender. Returns whether the description is empty.
bool receive_no_description(MPI_Comm lane, int peer) noexcept {
  std::array<std::byte, 4096> description;
  description.fill(std::byte{0xFF});  // names no sender
  MPI_Status status;
  const int code = native.Recv(description.data(), description.size(), MPI_BYTE, peer, tag, lane, &status);
  MPI_Count bytes = static_cast<MPI_Count>(description.size());
  if (code == MPI_SUCCESS) native.Get_elements_x(&status, MPI_BYTE, &bytes);
  if (bytes == 0) return true;
  constexpr std::size_t no_parts = 0;  // reading none asks for no memory
  static_cast<void>(CombinedFetch().read({description.data(), static_cast<std::size_t>(bytes)}, no_parts));
  return false;
}

/// For a process without memory, which the others count on: sends all of its parts as messages of their own, and
/// receives the parts that the others send as messages.
int take_part_without_memory(MPI_Comm lane, Exchanged& exchanged) noexcept {
  const PartsOfSide &sent = exchanged.sent, &received = exchanged.received;
  int own = 0;
  native.Comm_rank(lane, &own);
  for (std::size_t k = 0; k < sent.size(); ++k) {
    if (is_nothing(sent, k)) continue;
    const int peer = sent.peers[k];
    if (peer != own && is_first_of_peer(sent, k)) send_no_description(lane, peer);
    exchanged.messages.send(sent.parts[k], peer);
  }
  requests::start_deferred();
  for (std::size_t k = 0; k < received.size(); ++k) {
    const int peer = received.peers[k];
    if (is_nothing(received, k) || !is_first_of_peer(received, k)) continue;
    if (peer != own && !receive_no_description(lane, peer)) continue;
    for (std::size_t j = k; j < received.size(); ++j) {
      if (received.peers[j] == peer && !is_nothing(received, j)) exchanged.messages.receive(received.parts[j], peer);
    }
  }
  exchanged.messages.finish();
  return MPI_ERR_NO_MEM;
}

}  // namespace

int exchange_combined(const char* function, MPI_Comm lane, Exchanged& exchanged, Unmapped& unmapped) noexcept {
  std::optional<CombinedExchange> exchange;
  try {
    exchange.emplace(function, lane, exchanged.messages);
    const int code = exchange->prepare(exchanged.sent, exchanged.received);
    return code == MPI_SUCCESS ? exchange->run(unmapped) : code;
  } catch (const std::exception&) {
    if (exchange) exchange->withdraw();
    exchange.reset();
    return take_part_without_memory(lane, exchanged);
  }
}

}  // namespace gapless::mpi::by_messages
