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

/// Makes `device` current, in its primary context where another GPU's is current. What is put back is the context: the
/// program may have one of its own making, and a GPU that is chosen by the runtime has a context made for it, in
/// hundreds of megabytes of its memory.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) noexcept;
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  cudaError_t error() const noexcept { return error_; }

 private:
  CUcontext previous_;
  int previous_device_ = 0;  ///< which a thread without a context uses, as it has chosen none
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
