#include "pack/cuda/state.hpp"

#include <atomic>
#include <new>

#include "base/pause.hpp"
#include "base/settings.hpp"
#include "device/cuda/scopes.hpp"
#include "device/cuda/streams.hpp"
#include "pack/cuda/launch/copy_engine.hpp"

namespace gapless::pack::gpu {
namespace {

/// Numbers of so many submissions, each in a line of its own: page-locked and in GPU memory.
constexpr std::size_t numbers = 32, words_per_line = 16;

cudaError_t allocate(std::uint32_t*& flags, std::uint32_t*& arrived, cudaStream_t stream) noexcept {
  constexpr std::size_t bytes = numbers * words_per_line * sizeof(std::uint32_t);
  const device::cuda::OutsideCapture outside;
  void *on_host = nullptr, *on_gpu = nullptr;
  cudaError_t error = cudaHostAlloc(&on_host, bytes, cudaHostAllocPortable);
  if (error != cudaSuccess) return error;
  error = cudaMalloc(&on_gpu, bytes);
  if (error == cudaSuccess) error = cudaMemsetAsync(on_gpu, 0, bytes, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) {
    cudaFreeHost(on_host);
    if (on_gpu != nullptr) cudaFree(on_gpu);
    return error;
  }
  flags = static_cast<std::uint32_t*>(on_host);
  arrived = static_cast<std::uint32_t*>(on_gpu);
  return cudaSuccess;
}

constexpr int priority_of_default_stream = 0;

/// What GAPLESS_GPU_LAUNCH asks for.
bool may_launch_graphs() noexcept { return settings().gpu_launch != "kernel"; }

}  // namespace

Resident& ContextState::resident(int device) {
  std::call_once(resident_made_, [&] { resident_ = make_resident(device); });
  return *resident_;
}

cudaError_t LaneState::prepare(cudaStream_t stream) noexcept {
  if (!submissions_.empty()) return cudaSuccess;
  const device::cuda::OutsideCapture outside;
  int highest = 0;
  cudaError_t error = device::cuda::highest_priority(highest);
  Submission* const first = error == cudaSuccess ? acquire(stream, error) : nullptr;
  if (first == nullptr) return error;
  release(*first);
  if (may_launch_graphs()) {
    graphs.reset(new (std::nothrow) GraphLaunches(priority_of_default_stream));
    high_priority_graphs.reset(new (std::nothrow) GraphLaunches(highest));
  }
  return error;
}

Submission* LaneState::acquire(cudaStream_t stream, cudaError_t& error) noexcept {
  if (unused_.empty()) {
    try {
      error = add(stream);
    } catch (const std::bad_alloc&) {
      error = cudaErrorMemoryAllocation;
    }
    if (error != cudaSuccess) return nullptr;
  }
  Submission* const submission = unused_.back();
  unused_.pop_back();
  return submission;
}

void LaneState::release(Submission& submission) noexcept { unused_.push_back(&submission); }

cudaError_t LaneState::add(cudaStream_t stream) {
  unused_.reserve(submissions_.size() + numbers);
  std::uint32_t *flags = nullptr, *arrived = nullptr;
  if (const cudaError_t error = allocate(flags, arrived, stream); error != cudaSuccess) return error;
  for (std::size_t i = 0; i < numbers; ++i) {
    Submission& submission = submissions_.emplace_back();
    submission.owner = this;
    submission.completion.flag = flags + i * words_per_line;
    submission.completion.arrived = arrived + i * words_per_line;
    unused_.push_back(&submission);
  }
  return cudaSuccess;
}

const Completion& Submission::next_completion(Reach reach) noexcept {
  *const_cast<volatile std::uint32_t*>(completion.flag) = 0;
  completion.beyond_gpu = reach == Reach::beyond ? 1 : 0;
  return completion;
}

bool Submission::has_ended() noexcept {
  constexpr int now_and_then = 1 << 12;
  if (completes && *const_cast<const volatile std::uint32_t*>(completion.flag) != 0) {
    std::atomic_thread_fence(std::memory_order_acquire);
    return true;
  }
  if (completes && ++polls % now_and_then != 0) return false;
  const device::cuda::CurrentContext current(context);
  return current.error() != cudaSuccess || device::cuda::has_ended(queue);
}

cudaError_t Submission::wait() const noexcept {
  // About 200 microseconds: whoever waits longer does not notice what synchronising costs, and may want to sleep. For
  // the first few of them, within which a small message is done, a pause would only delay the news.
  constexpr int hasty_polls = 1 << 12, most_polls = 1 << 14;
  const auto* flag = const_cast<const volatile std::uint32_t*>(completion.flag);
  for (int i = 0; completes && i < most_polls; ++i) {
    if (*flag != 0) {
      std::atomic_thread_fence(std::memory_order_acquire);
      return cudaSuccess;
    }
    if (i >= hasty_polls) pause();
  }
  const device::cuda::CurrentContext current(context);
  if (current.error() != cudaSuccess) return current.error();
  if (route.engine == Engine::copies) return wait_for_copies(queue);
  // Waiting is forbidden to a thread that captures, be it another stream.
  const device::cuda::OutsideCapture outside;
  return cudaStreamSynchronize(queue);
}

}  // namespace gapless::pack::gpu
