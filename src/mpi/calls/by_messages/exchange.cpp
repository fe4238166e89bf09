#include "mpi/calls/by_messages/exchange.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <numeric>
#include <vector>

#include "base/settings.hpp"
#include "device/device.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/headers/speaking.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/entry_points.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/parts.hpp"
#include "transfer/rdma/rendezvous/service.hpp"

namespace gapless::mpi::by_messages {
namespace {

constinit std::atomic<std::uint64_t> exchanges{0};

/// Below, a packed part for each peer in the library's exchange takes no longer: `bench/halo.py`, 64^3 and 128^3.
constexpr layout::Offset least_bytes = 512 << 10;

Neighbors::Ranks peers_of_call(const CallFacts& call, const MemoryArgument& out) {
  if (is_of_neighbors(out.kind)) return call.neighbors().ranks();
  Neighbors::Ranks all;
  all.sources.resize(peers_in(call, out.kind));
  std::iota(all.sources.begin(), all.sources.end(), 0);
  all.destinations = all.sources;
  return all;
}

/// Copies what a rank exchanges with itself straight from one layout into the other. False if its memory is not the
/// CPU's, or not understood.
bool copy_own(const Part& from, const Part& to) noexcept {
  const UserBuffer out = identify(from.memory, from.count, from.datatype, Purpose::message, Analysis::now);
  const UserBuffer in = identify(to.memory, to.count, to.datatype, Purpose::message, Analysis::now);
  return can_be_copied_on_host(out, in) && transfer::copy_on_host(out.buffer, in.buffer) == transfer::Result::ok;
}

/// What a rank has to send, by what it gains.
class Bytes {
 public:
  void add(MPI_Comm communicator, const Part& part, int peer) noexcept {
    const TypeRecord& record = *type_cache::find(part.datatype);
    if (record.described == nullptr) return;
    const transfer::Buffer buffer{record.described.get(), part.count, const_cast<void*>(part.memory), {}};
    if (is_gpu_memory(address_of(part.memory, record.first_byte))) {
      on_gpu_ += buffer.size();
    } else if (is_by_fabric(communicator, peer)) {
      all_ += buffer.size();
      if (!transfer::is_contiguous(buffer) && transfer::choose_fabric(buffer)) gaining_ += buffer.size();
    }
  }
  Wish wish() const noexcept {
    // Messages between GPUs of several nodes are the library's.
    if (on_gpu_ >= least_bytes && !runtime::is_job_on_several_nodes()) return Wish::other;
    if (gaining_ == 0 || 2 * gaining_ < all_) return Wish::library;
    const bool is_corrected = !transfer::is_any_forced() && settings().model != "fixed";
    return is_corrected ? Wish::sooner : Wish::other;
  }

 private:
  /// Would a message to that rank go by the fabric, if that is sooner?
  static bool is_by_fabric(MPI_Comm communicator, int peer) noexcept {
    if (!transfer::rdma::is_wanted() || peer == MPI_PROC_NULL) return false;
    const int rank = headers::find_place(communicator, peer).rank;
    if (rank < 0 || rank == transfer::headers::own_rank()) return false;
    const transfer::headers::Inbox* const inbox = transfer::headers::find_inbox(rank);
    return inbox != nullptr && (inbox->is_remote() || settings().fabric_neighbours);
  }

  layout::Offset on_gpu_ = 0, all_ = 0, gaining_ = 0;
};

/// The messages of one exchange. Those that are under way when an error ends it early are let go of.
class Messages {
 public:
  explicit Messages(MPI_Comm lane) noexcept : lane_(lane) {}
  ~Messages() {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      entry::Cancel(&request);
      entry::Request_free(&request);
    }
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  /// Begins those of one side, from the `first` on, so that not all ranks send to the same one at first. A part of no
  /// bytes is none at the other end either. Throws std::bad_alloc.
  int begin(const std::vector<Part>& parts, const std::vector<int>& peers, std::size_t first, bool receives) {
    requests_.reserve(requests_.size() + parts.size());
    const std::size_t count = std::min(parts.size(), peers.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t k = (first + i) % count;
      const Part& part = parts[k];
      if (peers[k] == MPI_PROC_NULL || is_empty(part)) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      const int code = receives ? receive(part, peers[k], request) : send(part, peers[k], request);
      if (code != MPI_SUCCESS) return code;
      requests_.push_back(request);
    }
    return MPI_SUCCESS;
  }
  int finish() {
    std::vector<MPI_Status> statuses(requests_.size());
    const int code = entry::Waitall(static_cast<int>(requests_.size()), requests_.data(), statuses.data());
    if (code == MPI_SUCCESS) return code;
    for (const MPI_Status& status : statuses) {
      if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) return status.MPI_ERROR;
    }
    return code;
  }

 private:
  static bool is_empty(const Part& part) noexcept {
    return part.count == 0 || (runtime::is_usable(part.datatype) && runtime::size_of(part.datatype) == 0);
  }
  static bool fits(MPI_Count count) noexcept { return count <= std::numeric_limits<int>::max(); }

  int send(const Part& part, int peer, MPI_Request& request) const noexcept {
    if (fits(part.count))
      return entry::Isend(part.memory, static_cast<int>(part.count), part.datatype, peer, 0, lane_, &request);
    int code = MPI_ERR_COUNT;
    GAPLESS_IF_DECLARED(Isend_c,
                        code = entry::Isend_c(part.memory, part.count, part.datatype, peer, 0, lane_, &request);)
    return code;
  }
  int receive(const Part& part, int peer, MPI_Request& request) const noexcept {
    void* const memory = const_cast<void*>(part.memory);
    if (fits(part.count))
      return entry::Irecv(memory, static_cast<int>(part.count), part.datatype, peer, 0, lane_, &request);
    int code = MPI_ERR_COUNT;
    GAPLESS_IF_DECLARED(Irecv_c, code = entry::Irecv_c(memory, part.count, part.datatype, peer, 0, lane_, &request);)
    return code;
  }

  MPI_Comm lane_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

Wish wish_of(const CallFacts& call, const MemoryArgument& out) noexcept {
  if (!device::in_use() && !transfer::rdma::is_wanted()) return Wish::library;
  try {
    const Neighbors::Ranks peers = peers_of_call(call, out);
    std::vector<Part> parts;
    list_parts_by_peer(call, out, parts);
    Bytes bytes;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (parts[k].count > 0 && !parts[k].is_missing) bytes.add(call.communicator, parts[k], peers.destinations[k]);
    }
    return bytes.wish();
  } catch (const std::exception&) {
    return Wish::library;
  }
}

int exchange(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in, MPI_Comm lane) noexcept {
  try {
    const Neighbors::Ranks peers = peers_of_call(call, out);
    std::vector<Part> sent, received;
    list_parts_by_peer(call, out, sent);
    list_parts_by_peer(call, in, received);
    Messages messages(lane);
    exchanges.fetch_add(1, std::memory_order_relaxed);
    const bool is_among_all = !is_of_neighbors(out.kind);
    const auto own = is_among_all ? static_cast<std::size_t>(own_rank(call.communicator)) : 0;
    if (is_among_all && copy_own(sent[own], received[own])) sent[own].count = received[own].count = 0;
    if (const int code = messages.begin(received, peers.sources, own, true); code != MPI_SUCCESS) return code;
    if (const int code = messages.begin(sent, peers.destinations, own, false); code != MPI_SUCCESS) return code;
    return messages.finish();
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

}  // namespace gapless::mpi::by_messages

std::uint64_t gapless_exchanges_by_messages() {
  return gapless::mpi::by_messages::exchanges.load(std::memory_order_relaxed);
}
