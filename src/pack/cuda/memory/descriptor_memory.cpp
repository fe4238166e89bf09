#include "pack/cuda/memory/descriptor_memory.hpp"

#include <cuda_runtime_api.h>

#include <exception>
#include <utility>

#include "device/cuda/context.hpp"
#include "device/cuda/errors.hpp"
#include "device/cuda/scopes.hpp"
#include "device/cuda/streams.hpp"

namespace gapless::pack::gpu {
namespace {

using device::cuda::failed;
using device::cuda::InContext;
using device::cuda::is_capturing;
using device::cuda::Lane;
using device::cuda::OutsideCapture;
using device::cuda::result;

constexpr std::size_t released_bytes_limit = std::size_t{16} << 20;

cudaError_t copy_behind_event(Upload& upload, const void* bytes, std::size_t count, cudaStream_t stream) noexcept {
  // Returns when the bytes have been read, which may be before they have arrived.
  cudaError_t error = cudaMemcpyAsync(upload.bytes, bytes, count, cudaMemcpyHostToDevice, stream);
  cudaEvent_t event = nullptr;
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  upload.arrival = event;
  if (error == cudaSuccess) error = cudaEventRecord(event, stream);
  return error;
}

}  // namespace

Upload CudaDescriptorMemory::upload(int device, const void* bytes, std::size_t count) noexcept {
  const InContext here(device);
  const OutsideCapture outside;
  bool much_released;
  {
    std::lock_guard lock(mutex_);
    much_released = released_bytes_ > released_bytes_limit;
  }
  if (much_released) free_released();
  cudaError_t error = here.error();
  const Lane* own = error == cudaSuccess ? here.lane(error) : nullptr;
  Upload result;
  if (own != nullptr) error = cudaMalloc(&result.bytes, count);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    free_released();
    error = cudaMalloc(&result.bytes, count);
  }
  if (error == cudaSuccess) error = copy_behind_event(result, bytes, count, own->stream);
  if (error == cudaSuccess) return result;
  failed("copying a datatype's description to the GPU", error);
  if (result.bytes != nullptr) release(device, result, count);
  return {};
}

Arrival CudaDescriptorMemory::follow(const Upload& upload, void* stream) noexcept {
  const OutsideCapture outside;
  auto* const event = static_cast<cudaEvent_t>(upload.arrival);
  auto* const queue = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaEventQuery(event);
  if (error == cudaSuccess) return Arrival::arrived;
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    // What is captured cannot wait for what is not, and will run later anyway.
    const bool captured = is_capturing(queue);
    error = captured ? cudaEventSynchronize(event) : cudaStreamWaitEvent(queue, event, 0);
    if (error == cudaSuccess) return captured ? Arrival::arrived : Arrival::followed;
  }
  failed("waiting for a datatype's description on the GPU", error);
  return Arrival::failed;
}

bool CudaDescriptorMemory::wait(Upload& upload) noexcept {
  const OutsideCapture outside;
  auto* const event = static_cast<cudaEvent_t>(std::exchange(upload.arrival, nullptr));
  const cudaError_t error = cudaEventSynchronize(event);
  cudaEventDestroy(event);
  return result("waiting for a description on the GPU", error) == device::Status::ok;
}

void CudaDescriptorMemory::release(int, const Upload& upload, std::size_t count) noexcept {
  try {
    std::lock_guard lock(mutex_);
    released_.push_back(upload);
    released_bytes_ += count;
  } catch (const std::exception&) {
    // Without memory to note it in, it is lost, which harms nobody.
  }
}

void CudaDescriptorMemory::free_released() noexcept {
  std::vector<Upload> released;
  {
    std::lock_guard lock(mutex_);
    std::swap(released, released_);
    released_bytes_ = 0;
  }
  for (const Upload& upload : released) {
    if (upload.arrival != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(upload.arrival));
    // Waits for the kernels that read it.
    if (cudaFree(upload.bytes) != cudaSuccess) cudaGetLastError();
  }
}

}  // namespace gapless::pack::gpu
