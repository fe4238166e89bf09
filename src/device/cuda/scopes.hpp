// What a call changes for its own duration and puts back.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace gapless::device::cuda {

/// The calling thread's context; nullptr where it has none.
CUcontext current_context() noexcept;

/// Makes a context current, which is there.
class CurrentContext {
 public:
  explicit CurrentContext(CUcontext context) noexcept;
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  cudaError_t error() const noexcept { return error_; }

 private:
  CUcontext previous_;
  bool changed_ = false;
  cudaError_t error_ = cudaSuccess;
};

/// Makes `device` current.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) noexcept {
    error_ = cudaGetDevice(&previous_);
    if (error_ == cudaSuccess && previous_ != device) {
      error_ = cudaSetDevice(device);
      changed_ = error_ == cudaSuccess;
    }
  }
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(previous_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  cudaError_t error() const noexcept { return error_; }

 private:
  int previous_ = 0;
  bool changed_ = false;
  cudaError_t error_ = cudaSuccess;
};

/// Lets this thread allocate while some stream of the program is being captured; what is done here is not captured.
class OutsideCapture {
 public:
  OutsideCapture() noexcept { exchanged_ = cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess; }
  ~OutsideCapture() {
    if (exchanged_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool exchanged_ = false;
};

}  // namespace gapless::device::cuda
