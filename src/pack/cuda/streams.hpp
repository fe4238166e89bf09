// A stream and an event for every (thread, GPU), handed on when a thread ends.
#pragma once

#include <cuda_runtime_api.h>

namespace gapless::pack::cuda {

struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
};

/// The calling thread's lane on `device`, which must be the current device; nullptr with the reason in `error`.
const Lane* lane(int device, cudaError_t& error) noexcept;

}  // namespace gapless::pack::cuda
