#include "pack/cuda/runtime.hpp"

#include <cstdio>

#include "pack/cuda/kernels.hpp"
#include "pack/cuda/scopes.hpp"
#include "pack/cuda/streams.hpp"

namespace gapless::pack::cuda {
namespace {

using device::Location;
using device::MemoryKind;
using device::Status;

thread_local char last_error_text[256] = "";

Status failed(const char* what, cudaError_t error) noexcept {
  std::snprintf(last_error_text, sizeof last_error_text, "%s: %s", what, cudaGetErrorString(error));
  // Errors that do not stick to the context must not surface in the program's own next cudaGetLastError.
  cudaGetLastError();
  return error == cudaErrorMemoryAllocation ? Status::out_of_memory : Status::failed;
}

Status result(const char* what, cudaError_t error) noexcept {
  return error == cudaSuccess ? Status::ok : failed(what, error);
}

bool is_capturing(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

}  // namespace

void* CudaDescriptorMemory::upload(int device, const void* bytes, std::size_t count) noexcept {
  const CurrentDevice current(device);
  const OutsideCapture outside;
  cudaError_t error = current.error();
  const Lane* own = error == cudaSuccess ? lane(device, error) : nullptr;
  void* descriptor = nullptr;
  if (own != nullptr) error = cudaMalloc(&descriptor, count);
  if (error == cudaSuccess) error = cudaMemcpyAsync(descriptor, bytes, count, cudaMemcpyHostToDevice, own->stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(own->stream);
  if (error == cudaSuccess) return descriptor;
  failed("copying a datatype's description to the GPU", error);
  if (descriptor != nullptr) cudaFree(descriptor);
  return nullptr;
}

void CudaDescriptorMemory::release(int device, void* descriptor) noexcept {
  const CurrentDevice current(device);
  const OutsideCapture outside;
  cudaFree(descriptor);  // waits for the kernels that read it
}

int CudaRuntime::device_count() noexcept {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) return count;
  failed("looking for GPUs", error);
  return 0;
}

std::string CudaRuntime::describe(int device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) {
    failed("reading the GPU's properties", error);
    return last_error_text;
  }
  int driver = 0;
  cudaDriverGetVersion(&driver);
  char line[512];
  std::snprintf(line, sizeof line, "%s, compute capability %d.%d, %d multiprocessors, %zu MiB, CUDA driver %d.%d",
                properties.name, properties.major, properties.minor, properties.multiProcessorCount,
                properties.totalGlobalMem >> 20, driver / 1000, driver % 1000 / 10);
  return line;
}

const char* CudaRuntime::last_error() noexcept { return last_error_text; }

Location CudaRuntime::locate(const void* pointer) noexcept {
  cudaPointerAttributes attributes;
  if (const cudaError_t error = cudaPointerGetAttributes(&attributes, pointer); error != cudaSuccess) {
    failed("asking what memory a pointer names", error);
    return {};
  }
  switch (attributes.type) {
    case cudaMemoryTypeDevice:
      return {MemoryKind::device, attributes.device};
    case cudaMemoryTypeManaged:
      return {MemoryKind::managed, attributes.device};
    case cudaMemoryTypeHost:
      return {MemoryKind::pinned, attributes.device};
    default:
      return {};
  }
}

Status CudaRuntime::allocate(MemoryKind kind, int device, std::size_t bytes, void** pointer) noexcept {
  *pointer = nullptr;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  const OutsideCapture outside;
  if (kind == MemoryKind::device) return result("allocating GPU memory", cudaMalloc(pointer, bytes));
  if (kind == MemoryKind::pinned) {
    return result("allocating page-locked memory",
                  cudaHostAlloc(pointer, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  }
  std::snprintf(last_error_text, sizeof last_error_text, "only device and pinned memory can be allocated");
  return Status::unsupported;
}

void CudaRuntime::release(MemoryKind kind, int device, void* pointer) noexcept {
  const CurrentDevice current(device);
  const OutsideCapture outside;
  const cudaError_t error = kind == MemoryKind::device ? cudaFree(pointer) : cudaFreeHost(pointer);
  if (error != cudaSuccess) failed("freeing memory", error);
}

void* CudaRuntime::stream(int device) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  const Lane* own = error == cudaSuccess ? lane(device, error) : nullptr;
  if (own == nullptr) failed("creating a stream", error);
  return own != nullptr ? own->stream : nullptr;
}

Status CudaRuntime::follow_default_stream(int device, void* stream) noexcept {
  const CurrentDevice current(device);
  cudaError_t error = current.error();
  if (error != cudaSuccess) return failed("choosing the GPU", error);
  // While a stream that synchronises with the default stream is being captured, the default stream must not be touched,
  // and it has no work that could be waited for: what is captured does not run.
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  error = cudaStreamIsCapturing(cudaStreamLegacy, &capture);
  if (error == cudaErrorStreamCaptureImplicit) {
    cudaGetLastError();
    return Status::ok;
  }
  const Lane* own = error == cudaSuccess ? lane(device, error) : nullptr;
  if (own != nullptr) error = cudaEventRecord(own->event, cudaStreamLegacy);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), own->event, 0);
  return result("waiting for the default stream", error);
}

Status CudaRuntime::copy(void* destination, const void* source, std::size_t bytes, int device, void* stream) noexcept {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  return result("copying",
                cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)));
}

Status CudaRuntime::synchronize(int device, void* stream) noexcept {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  return result("waiting for the GPU", cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}

Status CudaRuntime::run(std::span<const Job> jobs, int device, void* stream) noexcept {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  auto* const queue = static_cast<cudaStream_t>(stream);
  try {
    for (const Job& job : jobs) {
      const Planner::Planned planned = planner_.plan(job, device);
      if (planned.out_of_memory) return Status::out_of_memory;
      if (planned.descriptor && is_capturing(queue)) descriptors_.keep(planned.descriptor);
      const cudaError_t error = launch(planned.launch, queue);
      if (error != cudaSuccess) return failed("starting a pack or unpack kernel", error);
    }
  } catch (const std::bad_alloc&) {
    return failed("planning a pack or unpack", cudaErrorMemoryAllocation);
  }
  return Status::ok;
}

}  // namespace gapless::pack::cuda

extern "C" __attribute__((visibility("default"))) gapless::device::Runtime* gapless_device_open(int interface_version) {
  if (interface_version != gapless_device_interface_version) return nullptr;
  // Never destroyed: at exit the driver may be gone first.
  static auto* const runtime = new gapless::pack::cuda::CudaRuntime;
  return runtime;
}
