#include "device/cuda/errors.hpp"

#include <cstdio>

namespace gapless::device::cuda {
namespace {

thread_local char text[256] = "";

}  // namespace

Status failed(const char* what, cudaError_t error) noexcept {
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(error));
  cudaGetLastError();
  return error == cudaErrorMemoryAllocation ? Status::out_of_memory : Status::failed;
}

Status unsupported(const char* format, int number) noexcept {
  std::snprintf(text, sizeof text, format, number);
  return Status::unsupported;
}

const char* last_error_text() noexcept { return text; }

}  // namespace gapless::device::cuda
