#include "pack/cuda/state.hpp"

#include <atomic>
#include <new>

#include "base/settings.hpp"
#include "device/cuda/scopes.hpp"
#include "device/cuda/streams.hpp"

namespace gapless::pack::gpu {
namespace {

cudaError_t create(Completion& completion, cudaStream_t stream) noexcept {
  void *flag = nullptr, *arrived = nullptr;
  cudaError_t error = cudaHostAlloc(&flag, sizeof *completion.flag, cudaHostAllocPortable);
  if (error != cudaSuccess) return error;
  error = cudaMalloc(&arrived, sizeof *completion.arrived);
  if (error == cudaSuccess) error = cudaMemsetAsync(arrived, 0, sizeof *completion.arrived, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) {
    cudaFreeHost(flag);
    if (arrived != nullptr) cudaFree(arrived);
    return error;
  }
  completion.flag = static_cast<std::uint32_t*>(flag);
  completion.arrived = static_cast<std::uint32_t*>(arrived);
  *completion.flag = 0;
  return cudaSuccess;
}

constexpr int priority_of_default_stream = 0;

/// What GAPLESS_GPU_LAUNCH asks for.
bool may_launch_graphs() noexcept { return settings().gpu_launch != "kernel"; }

/// Lets the other thread of the core run for some nanoseconds.
void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Resident& ContextState::resident(int device) {
  std::call_once(resident_made_, [&] { resident_ = make_resident(device); });
  return *resident_;
}

cudaError_t LaneState::prepare(cudaStream_t stream) noexcept {
  if (completion_.flag != nullptr) return cudaSuccess;
  const device::cuda::OutsideCapture outside;
  int highest = 0;
  cudaError_t error = device::cuda::highest_priority(highest);
  if (error == cudaSuccess) error = create(completion_, stream);
  if (error == cudaSuccess && may_launch_graphs()) {
    graphs.reset(new (std::nothrow) GraphLaunches(priority_of_default_stream));
    high_priority_graphs.reset(new (std::nothrow) GraphLaunches(highest));
  }
  return error;
}

const Completion& LaneState::next_completion(Reach reach) noexcept {
  *const_cast<volatile std::uint32_t*>(completion_.flag) = 0;
  completion_.beyond_gpu = reach == Reach::beyond ? 1 : 0;
  return completion_;
}

cudaError_t LaneState::wait(cudaStream_t queue) const noexcept {
  // About 200 microseconds: whoever waits longer does not notice what synchronising costs, and may want to sleep. For
  // the first few of them, within which a small message is done, a pause would only delay the news.
  constexpr int hasty_polls = 1 << 12, polls = 1 << 14;
  const auto* flag = const_cast<const volatile std::uint32_t*>(completion_.flag);
  for (int i = 0; i < polls; ++i) {
    if (*flag != 0) {
      std::atomic_thread_fence(std::memory_order_acquire);
      return cudaSuccess;
    }
    if (i >= hasty_polls) pause();
  }
  // Waiting is forbidden to a thread that captures, be it another stream.
  const device::cuda::OutsideCapture outside;
  return cudaStreamSynchronize(queue);
}

}  // namespace gapless::pack::gpu
