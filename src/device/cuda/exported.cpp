// Memory that others reach. GPU memory for processes: the runtime's IPC handles, which name whole allocations of
// cudaMalloc. GPU memory for devices of the machine: dma-buf descriptors (GPUDirect RDMA). Memory of the host for GPUs:
// page-locked.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstring>

#include "base/hash.hpp"
#include "base/settings.hpp"
#include "device/cuda/driver_function.hpp"
#include "device/cuda/driver_numbers.hpp"
#include "device/cuda/errors.hpp"
#include "device/cuda/runtime.hpp"
#include "device/cuda/scopes.hpp"

namespace gapless::device::cuda {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(MemoryHandle::driver));

/// The allocation that the address lies in.
cudaError_t range_of(const void* address, MemoryHandle& handle) noexcept {
  using Function = decltype(&cuMemGetAddressRange);
  static const auto range = driver_function<Function>("cuMemGetAddressRange");
  if (range == nullptr) return cudaErrorNotSupported;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const CUresult error = range(&base, &bytes, reinterpret_cast<CUdeviceptr>(address));
  handle.base = base;
  handle.bytes = bytes;
  return as_runtime_error(error);
}

}  // namespace

/// Of the UUID, which is a GPU's own, or an instance's of a GPU in parts.
std::uint64_t CudaRuntime::gpu_number(int device) noexcept {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) {
    failed("reading the GPU's properties", error);
    return 0;
  }
  return hash_of({properties.uuid.bytes, sizeof properties.uuid.bytes});
}

std::uint64_t CudaRuntime::allocation_number(const void* address) noexcept { return cuda::allocation_number(address); }

Status CudaRuntime::export_memory(const void* address, MemoryHandle& handle) noexcept {
  if (!settings().ipc) return unsupported("GAPLESS_IPC=0 forbids it");
  const Location location = locate(address);
  if (location.kind != MemoryKind::device) return unsupported("only GPU memory can be exported");
  const CurrentDevice current(location.device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  const OutsideCapture outside;
  handle.number = cuda::allocation_number(address);
  handle.process = getpid();
  handle.gpu = gpu_number(location.device);
  cudaError_t error = range_of(address, handle);
  cudaIpcMemHandle_t driver_handle;
  std::size_t free = 0, total = 0;
  if (error == cudaSuccess) error = cudaMemGetInfo(&free, &total);
  handle.free_bytes = free;
  if (error == cudaSuccess) error = cudaIpcGetMemHandle(&driver_handle, reinterpret_cast<void*>(handle.base));
  if (error != cudaSuccess) {
    failed("exporting GPU memory", error);
    return Status::unsupported;
  }
  std::memcpy(handle.driver.data(), &driver_handle, sizeof driver_handle);
  return Status::ok;
}

Status CudaRuntime::open_memory(const MemoryHandle& handle, int device, void** base) noexcept {
  *base = nullptr;
  if (!settings().ipc) return unsupported("GAPLESS_IPC=0 forbids it");
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  const OutsideCapture outside;
  cudaIpcMemHandle_t driver_handle;
  std::memcpy(&driver_handle, handle.driver.data(), sizeof driver_handle);
  return result("opening another process's GPU memory",
                cudaIpcOpenMemHandle(base, driver_handle, cudaIpcMemLazyEnablePeerAccess));
}

void CudaRuntime::close_memory(int device, void* base) noexcept {
  const CurrentDevice current(device);
  const OutsideCapture outside;
  if (const cudaError_t error = cudaIpcCloseMemHandle(base); error != cudaSuccess) {
    failed("closing another process's GPU memory", error);
  }
}

Status CudaRuntime::lock_pages(void* pages, std::size_t bytes, int device) noexcept {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  const OutsideCapture outside;
  const cudaError_t error = cudaHostRegister(pages, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (error != cudaSuccess) return failed("page-locking memory", error);
  void* seen_by_gpu = nullptr;
  if (cudaHostGetDevicePointer(&seen_by_gpu, pages, 0) == cudaSuccess && seen_by_gpu == pages) return Status::ok;
  cudaGetLastError();
  unlock_pages(pages, device);
  return unsupported("the GPU addresses page-locked memory elsewhere than the CPU");
}

void CudaRuntime::unlock_pages(void* pages, int device) noexcept {
  const CurrentDevice current(device);
  const OutsideCapture outside;
  if (const cudaError_t error = cudaHostUnregister(pages); error != cudaSuccess) {
    failed("letting go of page-locked memory", error);
  }
}

Status CudaRuntime::export_to_devices(const void* address, std::size_t bytes, int device, int* descriptor) noexcept {
#if CUDA_VERSION >= 11070
  using Function = decltype(&cuMemGetHandleForAddressRange);
  static const auto handle_of = driver_function<Function>("cuMemGetHandleForAddressRange");
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  if (handle_of != nullptr) {
    const CUresult error =
        handle_of(descriptor, reinterpret_cast<CUdeviceptr>(address), bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (error == CUDA_SUCCESS) return Status::ok;
  }
#endif
  *descriptor = -1;
  return unsupported("GPU memory cannot be had as a dma-buf");
}

Status CudaRuntime::flush_writes_of_devices(int device) noexcept {
  const CurrentDevice current(device);
  if (current.error() != cudaSuccess) return failed("choosing the GPU", current.error());
  const OutsideCapture outside;
  const cudaError_t error = cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                                               cudaFlushGPUDirectRDMAWritesToOwner);
  // Where there is no such flush, a kernel's launch is one.
  if (error == cudaErrorNotSupported) {
    cudaGetLastError();
    return Status::ok;
  }
  return result("waiting for other devices' writes to GPU memory", error);
}

}  // namespace gapless::device::cuda
