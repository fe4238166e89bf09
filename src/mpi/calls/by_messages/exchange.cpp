#include "mpi/calls/by_messages/exchange.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <numeric>
#include <vector>

#include "device/device.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi::by_messages {
namespace {

constinit std::atomic<std::uint64_t> exchanges{0};

/// Below, a packed part for each peer in the library's exchange takes no longer: `bench/halo.py`, 64^3 and 128^3.
constexpr MPI_Count least_bytes = 512 << 10;

Neighbors::Ranks peers_of_call(const CallFacts& call, const MemoryArgument& out) {
  if (is_of_neighbors(out.kind)) return call.neighbors().ranks();
  Neighbors::Ranks all;
  all.sources.resize(peers_in(call, out.kind));
  std::iota(all.sources.begin(), all.sources.end(), 0);
  all.destinations = all.sources;
  return all;
}

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

  /// Begins those of one side. A part of no bytes is none at the other end either. Throws std::bad_alloc.
  int begin(const std::vector<Part>& parts, const std::vector<int>& peers, bool receives) {
    requests_.reserve(requests_.size() + parts.size());
    for (std::size_t k = 0; k < parts.size() && k < peers.size(); ++k) {
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

bool gains(const CallFacts& call, const MemoryArgument& out) noexcept {
  if (!device::in_use()) return false;
  try {
    std::vector<Part> parts;
    list_parts(call, out, parts);
    MPI_Count bytes = 0;
    for (const Part& part : parts) {
      if (part.count <= 0 || part.is_missing) continue;
      const TypeRecord& record = *type_cache::find(part.datatype);
      if (record.described == nullptr) continue;
      if (is_gpu_memory(address_of(part.memory, record.first_byte)))
        bytes += record.described->layout->size * part.count;
    }
    return bytes >= least_bytes;
  } catch (const std::exception&) {
    return false;
  }
}

int exchange(const CallFacts& call, const MemoryArgument& out, const MemoryArgument& in, MPI_Comm lane) noexcept {
  try {
    const Neighbors::Ranks peers = peers_of_call(call, out);
    std::vector<Part> sent, received;
    list_parts(call, out, sent);
    list_parts(call, in, received);
    Messages messages(lane);
    exchanges.fetch_add(1, std::memory_order_relaxed);
    if (const int code = messages.begin(received, peers.sources, true); code != MPI_SUCCESS) return code;
    if (const int code = messages.begin(sent, peers.destinations, false); code != MPI_SUCCESS) return code;
    return messages.finish();
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

}  // namespace gapless::mpi::by_messages

std::uint64_t gapless_exchanges_by_messages() {
  return gapless::mpi::by_messages::exchanges.load(std::memory_order_relaxed);
}
