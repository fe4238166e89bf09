// The driver's own functions, found through the runtime: they take less than the runtime's on a path where fractions of
// a microsecond count, and leave the runtime's last error alone.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace gapless::device::cuda {

/// nullptr if the driver lacks it. To be asked once.
template <class Function>
Function driver_function(const char* name) noexcept {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(function) : nullptr;
}

/// They have the same numbers since CUDA 10.1.
inline cudaError_t as_runtime_error(CUresult error) noexcept { return static_cast<cudaError_t>(error); }

}  // namespace gapless::device::cuda
