#include "pack/cuda/streams.hpp"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "pack/cuda/scopes.hpp"

namespace gapless::pack::cuda {
namespace {

void destroy(const Lane& lane) noexcept {
  if (lane.completion.flag != nullptr) cudaFreeHost(lane.completion.flag);
  if (lane.completion.arrived != nullptr) cudaFree(lane.completion.arrived);
  if (lane.event != nullptr) cudaEventDestroy(lane.event);
  if (lane.stream != nullptr) cudaStreamDestroy(lane.stream);
}

cudaError_t create(Completion& completion, cudaStream_t stream) noexcept {
  void *flag = nullptr, *arrived = nullptr;
  cudaError_t error = cudaHostAlloc(&flag, sizeof *completion.flag, cudaHostAllocPortable);
  if (error != cudaSuccess) return error;
  completion.flag = static_cast<std::uint32_t*>(flag);
  *completion.flag = 0;
  error = cudaMalloc(&arrived, sizeof *completion.arrived);
  completion.arrived = static_cast<std::uint32_t*>(arrived);
  if (error == cudaSuccess) error = cudaMemsetAsync(completion.arrived, 0, sizeof *completion.arrived, stream);
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

constexpr int priority_of_default_stream = 0;

/// What GAPLESS_GPU_LAUNCH asks for.
bool may_launch_graphs() noexcept {
  static const bool may = [] {
    const char* way = std::getenv("GAPLESS_GPU_LAUNCH");
    return way == nullptr || std::string_view(way) != "kernel";
  }();
  return may;
}

/// Lets the other thread of the core run for some nanoseconds.
void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

cudaError_t create(Lane& lane) noexcept {
  const OutsideCapture outside;
  int lowest = 0, highest = 0;
  cudaError_t error = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
  if (may_launch_graphs()) {
    lane.graphs.reset(new (std::nothrow) GraphLaunches(priority_of_default_stream));
    lane.graphs_ahead.reset(new (std::nothrow) GraphLaunches(highest));
  }
  // Whoever waits for communication waits longer than whoever computes beside it.
  if (error == cudaSuccess) error = cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, highest);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&lane.event, cudaEventDisableTiming);
  if (error == cudaSuccess) error = create(lane.completion, lane.stream);
  if (error != cudaSuccess) {
    destroy(lane);
    lane = {};
  }
  return error;
}

const Completion& Lane::next_completion(device::Reach reach) noexcept {
  *const_cast<volatile std::uint32_t*>(completion.flag) = 0;
  completion.beyond_gpu = reach == device::Reach::beyond ? 1 : 0;
  return completion;
}

cudaError_t Lane::wait(cudaStream_t queue) const noexcept {
  // About 200 microseconds: whoever waits longer does not notice what synchronising costs, and may want to sleep. For
  // the first few of them, within which a small message is done, a pause would only delay the news.
  constexpr int hasty_polls = 1 << 12, polls = 1 << 14;
  const auto* flag = const_cast<const volatile std::uint32_t*>(completion.flag);
  for (int i = 0; i < polls; ++i) {
    if (*flag != 0) {
      std::atomic_thread_fence(std::memory_order_acquire);
      return cudaSuccess;
    }
    if (i >= hasty_polls) pause();
  }
  return cudaStreamSynchronize(queue);
}

void IdleLanes::give(Lane&& lane) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    lanes_.push_back(std::move(lane));
  } catch (const std::exception&) {
    // Without memory to remember it by, the lane is lost, which harms nobody.
  }
}

Lane IdleLanes::take() noexcept {
  const std::lock_guard lock(mutex_);
  if (lanes_.empty()) return {};
  Lane lane = std::move(lanes_.back());
  lanes_.pop_back();
  return lane;
}

bool is_idle(cudaStream_t stream) noexcept {
  const OutsideCapture outside;
  const bool idle = cudaStreamQuery(stream) == cudaSuccess;
  if (!idle) cudaGetLastError();
  return idle;
}

}  // namespace gapless::pack::cuda
