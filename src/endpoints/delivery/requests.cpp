#include "endpoints/delivery/requests.hpp"

#include <exception>
#include <unordered_map>
#include <utility>

#include "endpoints/inner.hpp"

namespace gapless::mpi::endpoints::requests {
namespace {

std::uintptr_t key_of(MPI_Request request) noexcept {
#if defined(GAPLESS_VARIANT_MPICH)
  return static_cast<std::uint32_t>(request);
#else
  return reinterpret_cast<std::uintptr_t>(request);
#endif
}

/// Many small tables, so that threads seldom wait for each other.
struct Shard {
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, Operation*> operations;
};

std::atomic<int> count{0};

Shard& shard_of(MPI_Request request) {
  static auto& all = *new std::array<Shard, 64>;
  return all[(static_cast<std::uint64_t>(key_of(request)) * 0x9e3779b97f4a7c15u) >> 58];
}

std::vector<Failure>& failures() {
  static thread_local std::vector<Failure> all;
  return all;
}

int query(void* state, MPI_Status* status) {
  const auto& operation = *static_cast<Operation*>(state);
  set_status(status, operation);
  if (operation.code == MPI_SUCCESS) return MPI_SUCCESS;
  try {
    failures().push_back({operation.request, operation.code, operation.endpoint});
  } catch (const std::exception&) {
  }
  // Reported by whoever completes the request, through the endpoint's handler, which the library does not know.
  return MPI_SUCCESS;
}

int free_operation(void* state) {
  const std::unique_ptr<Operation> operation(static_cast<Operation*>(state));
  Shard& shard = shard_of(operation->request);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.operations.find(key_of(operation->request));
  if (found != shard.operations.end() && found->second == operation.get()) shard.operations.erase(found);
  count.fetch_sub(1, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int cancel_nothing(void*, int) { return MPI_SUCCESS; }

}  // namespace

int make(Operation* operation, MPI_Request* request) noexcept {
  const int code = native.Grequest_start(query, free_operation, cancel_nothing, operation, &operation->request);
  if (code != MPI_SUCCESS) return code;
  operation->has_request = true;
  *request = operation->request;
  count.fetch_add(1, std::memory_order_relaxed);
  try {
    Shard& shard = shard_of(*request);
    const std::lock_guard lock(shard.mutex);
    shard.operations[key_of(*request)] = operation;
    return MPI_SUCCESS;
  } catch (const std::exception&) {
    native.Grequest_complete(*request);
    inner.Request_free(request);
    return MPI_ERR_NO_MEM;
  }
}

Operation* find(MPI_Request request) noexcept {
  if (are_none() || request == MPI_REQUEST_NULL) return nullptr;
  Shard& shard = shard_of(request);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.operations.find(key_of(request));
  return found == shard.operations.end() ? nullptr : found->second;
}

bool are_none() noexcept { return count.load(std::memory_order_relaxed) == 0; }

std::vector<Failure> take_failures() noexcept { return std::exchange(failures(), {}); }

}  // namespace gapless::mpi::endpoints::requests
