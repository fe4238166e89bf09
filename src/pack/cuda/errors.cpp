#include "pack/cuda/errors.hpp"

#include <cstdio>

namespace gapless::pack::cuda {
namespace {

thread_local char text[256] = "";

}  // namespace

device::Status failed(const char* what, cudaError_t error) noexcept {
  std::snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(error));
  cudaGetLastError();
  return error == cudaErrorMemoryAllocation ? device::Status::out_of_memory : device::Status::failed;
}

device::Status unsupported(const char* format, int number) noexcept {
  std::snprintf(text, sizeof text, format, number);
  return device::Status::unsupported;
}

const char* last_error_text() noexcept { return text; }

}  // namespace gapless::pack::cuda
