// What the CUDA runtime reported, in gapless's words.
#pragma once

#include <cuda_runtime_api.h>

#include "device/device.hpp"

namespace gapless::pack::cuda {

/// Notes the failure for last_error(), and takes it from the program's own next cudaGetLastError.
device::Status failed(const char* what, cudaError_t error) noexcept;
/// Notes for last_error() what cannot be done; the format may hold one %d.
device::Status unsupported(const char* format, int number = 0) noexcept;
/// Of the calling thread's last failure; "" before the first.
const char* last_error_text() noexcept;

inline device::Status result(const char* what, cudaError_t error) noexcept {
  return error == cudaSuccess ? device::Status::ok : failed(what, error);
}

inline bool is_capturing(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

}  // namespace gapless::pack::cuda
