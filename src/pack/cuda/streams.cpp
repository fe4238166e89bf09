#include "pack/cuda/streams.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "pack/cuda/scopes.hpp"

namespace gapless::pack::cuda {
namespace {

/// Lanes of ended threads. Streams are never destroyed: at process exit the driver may be gone before our destructors.
struct Idle {
  std::mutex mutex;
  std::multimap<int, Lane> lanes;
};

Idle& idle() {
  static auto* instance = new Idle;
  return *instance;
}

struct OwnedLanes {
  std::vector<std::pair<int, Lane>> lanes;

  ~OwnedLanes() {
    try {
      std::lock_guard lock(idle().mutex);
      for (const auto& [device, lane] : lanes) idle().lanes.emplace(device, lane);
    } catch (...) {
      // Without memory to remember them by, the lanes are lost, which harms nobody.
    }
  }
};

cudaError_t create(Lane& lane) noexcept {
  const OutsideCapture outside;
  cudaError_t error = cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return error;
  error = cudaEventCreateWithFlags(&lane.event, cudaEventDisableTiming);
  if (error != cudaSuccess) cudaStreamDestroy(lane.stream);
  return error;
}

}  // namespace

const Lane* lane(int device, cudaError_t& error) noexcept {
  thread_local OwnedLanes owned;
  error = cudaSuccess;
  for (const auto& [owner, lane] : owned.lanes) {
    if (owner == device) return &lane;
  }
  try {
    owned.lanes.reserve(owned.lanes.size() + 1);
    Lane fresh;
    {
      std::lock_guard lock(idle().mutex);
      const auto it = idle().lanes.find(device);
      if (it != idle().lanes.end()) {
        fresh = it->second;
        idle().lanes.erase(it);
      }
    }
    if (fresh.stream == nullptr) error = create(fresh);
    if (error != cudaSuccess) return nullptr;
    owned.lanes.emplace_back(device, fresh);
    return &owned.lanes.back().second;
  } catch (...) {
    error = cudaErrorMemoryAllocation;
    return nullptr;
  }
}

}  // namespace gapless::pack::cuda
