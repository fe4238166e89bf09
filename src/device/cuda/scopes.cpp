#include "device/cuda/scopes.hpp"

#include "device/cuda/driver_function.hpp"

namespace gapless::device::cuda {
namespace {

struct Driver {
  decltype(&cuCtxGetCurrent) current = driver_function<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
  decltype(&cuCtxSetCurrent) make_current = driver_function<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent");
};

const Driver& driver() noexcept {
  static const Driver functions;
  return functions;
}

cudaError_t make_current(CUcontext context) noexcept {
  return driver().make_current != nullptr ? as_runtime_error(driver().make_current(context)) : cudaErrorNotSupported;
}

}  // namespace

CUcontext current_context() noexcept {
  CUcontext context = nullptr;
  const bool is_known = driver().current != nullptr && driver().current(&context) == CUDA_SUCCESS;
  return is_known ? context : nullptr;
}

CurrentContext::CurrentContext(CUcontext context) noexcept : previous_(current_context()) {
  if (previous_ == context) return;
  error_ = make_current(context);
  changed_ = error_ == cudaSuccess;
}

CurrentContext::~CurrentContext() {
  if (changed_) make_current(previous_);
}

CurrentDevice::CurrentDevice(int device) noexcept : previous_(current_context()) {
  // The plugin's own runtime knows what it chose itself, and of the program's choice the context alone.
  if (previous_ != nullptr) error_ = cudaGetDevice(&previous_device_);
  if (error_ != cudaSuccess || (previous_ != nullptr && previous_device_ == device)) return;
  error_ = cudaSetDevice(device);
  changed_ = error_ == cudaSuccess && previous_device_ != device;
}

// The driver may refuse a context whose GPU has been reset; the runtime makes it anew.
CurrentDevice::~CurrentDevice() {
  if (changed_ && make_current(previous_) != cudaSuccess) cudaSetDevice(previous_device_);
}

}  // namespace gapless::device::cuda
