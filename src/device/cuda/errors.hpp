// What the CUDA runtime reported, in gapless's words.
#pragma once

#include <cuda_runtime_api.h>

#include "device/runtime.hpp"

namespace gapless::device::cuda {

/// Notes the failure for last_error(), and takes it from the plugin's next cudaGetLastError, so that nothing else is
/// taken for failed. The program's is that of a runtime of its own, which does not see it.
Status failed(const char* what, cudaError_t error) noexcept;
/// Notes for last_error() what cannot be done; the format may hold one %d.
Status unsupported(const char* format, int number = 0) noexcept;
/// Of the calling thread's last failure; "" before the first.
const char* last_error_text() noexcept;

inline Status result(const char* what, cudaError_t error) noexcept {
  return error == cudaSuccess ? Status::ok : failed(what, error);
}

}  // namespace gapless::device::cuda
