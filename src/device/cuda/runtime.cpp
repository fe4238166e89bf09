#include "device/cuda/runtime.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
#include <utility>

#include "device/cuda/context.hpp"
#include "device/cuda/errors.hpp"
#include "device/cuda/scopes.hpp"
#include "device/cuda/streams.hpp"

namespace gapless::device::cuda {
namespace {

/// Lets the current device, `device`, address what is allocated on `peer`, from its default pool too.
cudaError_t enable_access(int device, int peer) noexcept {
  cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    error = cudaSuccess;
  }
  int has_pools = 0;
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, peer);
  if (error != cudaSuccess || has_pools == 0) return error;
  cudaMemPool_t pool = nullptr;
  error = cudaDeviceGetDefaultMemPool(&pool, peer);
  cudaMemAccessDesc access{};
  access.location = {cudaMemLocationTypeDevice, {device}};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  return error == cudaSuccess ? cudaMemPoolSetAccess(pool, &access, 1) : error;
}

/// As may_touch_default_stream(), of the null stream; any other may be touched.
cudaError_t may_touch(void* stream, bool& may) noexcept {
  may = true;
  return stream == nullptr ? may_touch_default_stream(may) : cudaSuccess;
}

}  // namespace

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
    return last_error_text();
  }
  int driver = 0;
  cudaDriverGetVersion(&driver);
  char line[512];
  std::snprintf(line, sizeof line, "%s, compute capability %d.%d, %d multiprocessors, %zu MiB, CUDA driver %d.%d",
                properties.name, properties.major, properties.minor, properties.multiProcessorCount,
                properties.totalGlobalMem >> 20, driver / 1000, driver % 1000 / 10);
  return line;
}

const char* CudaRuntime::last_error() noexcept { return last_error_text(); }

Location locate(const void* pointer) noexcept {
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
  return unsupported("only device and pinned memory can be allocated");
}

void CudaRuntime::release(MemoryKind kind, int device, void* pointer) noexcept {
  const CurrentDevice current(device);
  const OutsideCapture outside;
  const cudaError_t error = kind == MemoryKind::device ? cudaFree(pointer) : cudaFreeHost(pointer);
  if (error != cudaSuccess) failed("freeing memory", error);
}

bool CudaRuntime::has_context(std::uint64_t number) noexcept { return is_there(number); }

std::uint64_t CudaRuntime::context(int device) noexcept {
  const InContext here(device);
  if (here.error() == cudaSuccess) return here.context().number();
  failed("choosing the GPU", here.error());
  return 0;
}

void* CudaRuntime::stream(int device) noexcept {
  const InContext here(device);
  cudaError_t error = here.error();
  const Lane* own = error == cudaSuccess ? here.lane(error) : nullptr;
  if (own == nullptr) failed("creating a stream", error);
  return own != nullptr ? own->stream : nullptr;
}

Status CudaRuntime::follow_default_stream(int device, void* stream) noexcept {
  const InContext here(device);
  cudaError_t error = here.error();
  if (error != cudaSuccess) return failed("choosing the GPU", error);
  bool may = false;
  error = may_touch_default_stream(may);
  if (error == cudaSuccess && !may) return Status::ok;
  const Lane* own = error == cudaSuccess ? here.lane(error) : nullptr;
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
  bool may = false;
  const cudaError_t error = may_touch(stream, may);
  if (error != cudaSuccess || !may) return result("waiting for the default stream", error);
  const OutsideCapture outside;
  return result("waiting for the GPU", cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}

Status CudaRuntime::query(int device, void* stream, bool& is_idle) noexcept {
  is_idle = false;
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  bool may = false;
  cudaError_t error = may_touch(stream, may);
  is_idle = error == cudaSuccess && !may;
  if (error != cudaSuccess || !may) return result("asking the default stream", error);
  error = cuda::query(static_cast<cudaStream_t>(stream));
  is_idle = error == cudaSuccess;
  return error == cudaErrorNotReady ? Status::ok : result("asking whether the GPU is idle", error);
}

void CudaRuntime::adopt(int device) noexcept {
  static constinit thread_local bool has_adopted = false;
  if (std::exchange(has_adopted, true)) return;
  if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) failed("choosing the GPU", error);
}

Status CudaRuntime::enable_peer(int device, int peer) noexcept {
  if (device == peer) return Status::ok;
  std::uint64_t peer_context = known_context(peer);
  if (peer_context == 0) {
    const InContext there(peer);
    if (there.error() != cudaSuccess) return failed("choosing the other GPU", there.error());
    peer_context = there.context().number();
  }
  const InContext here(device);
  if (here.error() != cudaSuccess) return failed("choosing the GPU", here.error());
  std::atomic<std::uint64_t>* const accessible = here.context().accessible_peer(peer);
  if (accessible != nullptr && accessible->load(std::memory_order_relaxed) == peer_context) return Status::ok;
  const OutsideCapture outside;
  int can = 0;
  if (const cudaError_t error = cudaDeviceCanAccessPeer(&can, device, peer); error != cudaSuccess) {
    return failed("asking whether a GPU reaches another's memory", error);
  }
  if (can == 0) {
    return unsupported("it cannot address the memory of GPU %d", peer);
  }
  const cudaError_t error = enable_access(device, peer);
  if (error != cudaSuccess) return failed("letting a GPU address another's memory", error);
  if (accessible != nullptr) accessible->store(peer_context, std::memory_order_relaxed);
  return Status::ok;
}

}  // namespace gapless::device::cuda

extern "C" __attribute__((visibility("default"))) gapless::device::Runtime* gapless_device_open(int interface_version) {
  if (interface_version != gapless_device_interface_version) return nullptr;
  // Never destroyed: at exit the driver may be gone first.
  static auto* const runtime = new gapless::device::cuda::CudaRuntime;
  return runtime;
}
