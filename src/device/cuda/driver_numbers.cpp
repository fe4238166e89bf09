#include "device/cuda/driver_numbers.hpp"

#include "device/cuda/driver_function.hpp"

namespace gapless::device::cuda {
namespace {

struct Driver {
  decltype(&cuCtxGetId) context_number = driver_function<decltype(&cuCtxGetId)>("cuCtxGetId");
  decltype(&cuPointerGetAttributes) attributes =
      driver_function<decltype(&cuPointerGetAttributes)>("cuPointerGetAttributes");
};

const Driver& driver() noexcept {
  static const Driver functions;
  return functions;
}

std::uint64_t number_of_current_device() noexcept {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? static_cast<std::uint64_t>(device) + 1 : 0;
}

}  // namespace

std::uint64_t current_context_number() noexcept {
  if (driver().context_number == nullptr) return number_of_current_device();
  unsigned long long number = 0;
  return driver().context_number(nullptr, &number) == CUDA_SUCCESS ? number : 0;
}

std::uint64_t allocation_number(const void* address) noexcept {
  if (driver().attributes == nullptr) return 0;
  // The plural form calls addresses that it does not know 0, where the other makes an error of them.
  unsigned long long number = 0;
  CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_BUFFER_ID;
  void* answer = &number;
  const CUresult error = driver().attributes(1, &wanted, &answer, reinterpret_cast<CUdeviceptr>(address));
  return error == CUDA_SUCCESS ? number : 0;
}

}  // namespace gapless::device::cuda
