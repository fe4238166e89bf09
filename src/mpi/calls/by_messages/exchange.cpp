#include "mpi/calls/by_messages/exchange.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <iterator>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "device/device.hpp"
#include "mpi/calls/by_messages/combined_exchange.hpp"
#include "mpi/calls/by_messages/messages.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/nodes.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/parts.hpp"
#include "transfer/pulls/offering.hpp"
#include "transfer/rdma/rendezvous/service.hpp"

namespace gapless::mpi::by_messages {
namespace {

constinit std::atomic<std::uint64_t> exchanges{0};

/// Shorter exchanges are the library's: a packed part for each peer takes no longer than combined parts, or than parts
/// that are messages of their own (`bench/halo.py`, 64^3 and 128^3).
constexpr layout::Offset least_combined_bytes = 4096, least_bytes = 512 << 10;

/// From so many bytes on, messages are sooner than any way through the host: two processes that share a GPU take 0.3 ms
/// for 4 KiB and for 1 MiB, and the host takes longer for the latter.
constexpr layout::Offset least_certain_bytes = 1 << 20;

/// Copies what a rank exchanges with itself straight from one layout into the other. False if the CPU does not reach
/// the memory, or a datatype is opaque.
bool copy_own(const Part& from, const Part& to) noexcept {
  const UserBuffer out = identify(from.memory, from.count, from.datatype, Purpose::message, Analysis::now);
  const UserBuffer in = identify(to.memory, to.count, to.datatype, Purpose::message, Analysis::now);
  return can_be_copied_on_host(out, in) && transfer::copy_on_host(out.buffer, in.buffer) == transfer::Result::ok;
}

/// The wish for a way that is predicted to be sooner.
Wish wish_to_try() noexcept {
  const bool is_corrected = !transfer::is_any_forced() && settings().model != "fixed";
  return is_corrected ? Wish::sooner : Wish::other;
}

/// How many bytes a rank has to send, by what these gain.
class Bytes {
 public:
  explicit Bytes(Mapping mapping) noexcept
      : mapping_(mapping), can_be_combined_(mapping != Mapping::none && !transfer::rdma::is_wanted()) {}

  void add(MPI_Comm communicator, const Part& part, int peer) noexcept {
    const TypeRecord& record = *type_cache::find(part.datatype);
    if (record.described == nullptr) return;
    const transfer::Buffer buffer{record.described.get(), part.count, const_cast<void*>(part.memory), {}};
    if (is_gpu_memory(address_of(part.memory, record.first_byte))) {
      on_gpu_ += buffer.size();
      can_be_combined_ = can_be_combined_ && transfer::pulls::may_be_pulled(buffer);
    } else if (is_by_fabric(communicator, peer)) {
      all_ += buffer.size();
      if (!transfer::is_contiguous(buffer) && transfer::goes_by_fabric(buffer)) gaining_ += buffer.size();
    }
  }
  Wish wish() const noexcept {
    const layout::Offset least = can_be_combined_ ? least_combined_bytes : least_bytes;
    const Wish of_gpu_memory = on_gpu_ >= least ? wish_for_gpu_memory(on_gpu_, mapping_) : Wish::library;
    if (of_gpu_memory != Wish::library) return of_gpu_memory;
    return gaining_ == 0 || 2 * gaining_ < all_ ? Wish::library : wish_to_try();
  }

 private:
  /// Would a message to that rank go by the fabric, if the fabric is sooner?
  static bool is_by_fabric(MPI_Comm communicator, int peer) noexcept {
    if (!transfer::rdma::is_wanted() || peer == MPI_PROC_NULL) return false;
    const int rank = headers::find_peer(communicator, peer).rank;
    if (rank < 0 || rank == transfer::headers::own_rank()) return false;
    const transfer::headers::Inbox* const inbox = transfer::headers::find_inbox(rank);
    return inbox != nullptr && (inbox->is_remote() || settings().fabric_neighbours);
  }

  layout::Offset on_gpu_ = 0, all_ = 0, gaining_ = 0;
  Mapping mapping_;
  bool can_be_combined_;
};

/// The first mistake of the program in one side's parts. Asked before any other rank is sent anything.
int first_mistake_in(const PartsOfSide& side) noexcept {
  for (std::size_t k = 0; k < side.size(); ++k) {
    const Part& part = side.parts[k];
    if (side.peers[k] == MPI_PROC_NULL || part.count == 0) continue;
    const UserBuffer user = identify(part.memory, part.count, part.datatype, Purpose::message, Analysis::now);
    if (user.is_described()) continue;
    if (const int code = mistake_in(part, user); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

/// Begins the messages of one side, from part `first` on, so that not all ranks send to one rank at first. Begins all
/// of them, also behind one that fails, because the other ranks wait. Returns the first error.
template <class Begin>
int begin_each(const PartsOfSide& side, std::size_t first, Begin begin) noexcept {
  int first_code = MPI_SUCCESS;
  for (std::size_t i = 0; i < side.size(); ++i) {
    const std::size_t k = (first + i) % side.size();
    if (side.peers[k] == MPI_PROC_NULL || is_empty(side.parts[k])) continue;
    const int code = begin(side.parts[k], side.peers[k]);
    if (first_code == MPI_SUCCESS) first_code = code;
  }
  return first_code;
}

/// Where this process gathers or scatters in place, or broadcasts, its own part is where it belongs.
void leave_out_own_in_place(const CallFacts& call, Exchanged& exchanged) noexcept {
  const auto own = static_cast<std::size_t>(own_rank(call.communicator));
  Part &from = exchanged.sent.parts[own], &to = exchanged.received.parts[own];
  // Other datatypes lead to other places from the same address.
  const bool is_in_place = from.memory == to.memory && from.datatype == to.datatype && from.count == to.count;
  if (is_in_place) from.count = to.count = 0;
}

/// Makes an exchange in which each part is a message.
int exchange_in_messages(const CallFacts& call, MPI_Comm lane, bool is_among_all, Exchanged& exchanged) noexcept {
  PartsOfSide &sent = exchanged.sent, &received = exchanged.received;
  Messages& messages = exchanged.messages;
  for (const PartsOfSide* side : {&received, &sent}) {
    if (const int code = first_mistake_in(*side); code != MPI_SUCCESS) return code;
  }
  const auto own = is_among_all ? static_cast<std::size_t>(own_rank(call.communicator)) : 0;
  if (is_among_all && copy_own(sent.parts[own], received.parts[own]))
    sent.parts[own].count = received.parts[own].count = 0;
  messages.begin(lane);
  const auto receive = [&](const Part& part, int peer) { return messages.receive(part, peer); };
  const auto send = [&](const Part& part, int peer) { return messages.send(part, peer); };
  const int codes[] = {begin_each(received, own, receive), begin_each(sent, own, send), messages.finish()};
  const int* const first = std::ranges::find_if(codes, [](int code) { return code != MPI_SUCCESS; });
  return first != std::end(codes) ? *first : MPI_SUCCESS;
}

}  // namespace

Wish wish_of(const CallFacts& call, const Sides& sides, Mapping mapping) noexcept {
  if (!device::in_use() && !transfer::rdma::is_wanted()) return Wish::library;
  if (call.has_root && !call.is_at_root()) return Wish::library;
  try {
    const Neighbors::Ranks peers = peers_of(call, sides);
    const std::vector<int>& ranks = peers.destinations;
    std::vector<Part> parts;
    const bool goes_to_root = call.has_root && sides.has_one_part();
    (goes_to_root ? list_received : list_sent)(call, sides, ranks.size(), parts);
    Bytes bytes(mapping);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (parts[k].count > 0 && !parts[k].is_missing) bytes.add(call.communicator, parts[k], ranks[k]);
    }
    return bytes.wish();
  } catch (const std::exception&) {
    return Wish::library;
  }
}

Wish wish_for_gpu_memory() noexcept {
  // Messages between GPUs of several nodes are the library's.
  return is_job_on_one_node() ? Wish::other : Wish::library;
}

Wish wish_for_gpu_memory(layout::Offset bytes, Mapping mapping) noexcept {
  if (!is_job_on_one_node()) return Wish::library;
  const bool is_certain = bytes >= least_certain_bytes && !runtime::library_reads_gpu_memory();
  // What exchanges take before peers have mapped memory tells nothing of those after that.
  return is_certain || mapping == Mapping::under_way ? Wish::other : wish_to_try();
}

namespace {

/// Throws std::bad_alloc.
bool reserve(Neighbors::Ranks peers, Exchanged& exchanged) {
  exchanged.sent.parts.reserve(peers.destinations.size());
  exchanged.received.parts.reserve(peers.sources.size());
  exchanged.messages.reserve(peers.destinations.size() + peers.sources.size());
  exchanged.sent.peers = std::move(peers.destinations);
  exchanged.received.peers = std::move(peers.sources);
  return exchanged.is_there = true;
}

}  // namespace

bool reserve(const CallFacts& call, const Sides& sides, Exchanged& exchanged) noexcept try {
  return exchanged.is_there || reserve(peers_of(call, sides), exchanged);
} catch (const std::exception&) {
  return false;
}

bool reserve_for_all(const CallFacts& call, Exchanged& exchanged) noexcept try {
  return exchanged.is_there || reserve(all_ranks_of(call), exchanged);
} catch (const std::exception&) {
  return false;
}

int exchange(const CallFacts& call, const Sides& sides, const AgreedExchange& agreed) noexcept {
  Exchanged& exchanged = agreed.exchanged();
  PartsOfSide &sent = exchanged.sent, &received = exchanged.received;
  Messages& messages = exchanged.messages;
  // reserve() has made room for all parts, so the lists do not throw.
  list_sent(call, sides, sent.peers.size(), sent.parts);
  list_received(call, sides, received.peers.size(), received.parts);
  const bool may_be_in_place = call.has_root || sides.has_one_part();
  if (may_be_in_place && !sides.is_of_neighbors()) leave_out_own_in_place(call, exchanged);
  exchanges.fetch_add(1, std::memory_order_relaxed);
  if (transfer::rdma::is_wanted())
    return exchange_in_messages(call, agreed.lane(), !sides.is_of_neighbors(), exchanged);
  // Without a fabric all ranks are of one node (may_be()).
  messages.begin(agreed.lane());
  return exchange_combined(call.name, agreed.lane(), exchanged, agreed.unmapped());
}

}  // namespace gapless::mpi::by_messages

std::uint64_t gapless_exchanges_by_messages() {
  return gapless::mpi::by_messages::exchanges.load(std::memory_order_relaxed);
}
