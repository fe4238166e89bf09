// In the place of the kernels: launches that only tell the test what they would complete.
#pragma once

#include <cuda_runtime_api.h>

#include "pack/cuda/kernels/kernels.hpp"

namespace gapless::pack::gpu {

/// Each test program defines what a launch does.
cudaError_t launched(const Completion& completion) noexcept;

}  // namespace gapless::pack::gpu
