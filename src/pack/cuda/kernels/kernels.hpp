// Launching prepared work on a CUDA stream.
#pragma once

#include <cuda_runtime_api.h>

#include "pack/cuda/launch/tile_launch.hpp"
#include "pack/gpu/batch/batch.hpp"
#include "pack/gpu/batch/pair_batch.hpp"
#include "pack/gpu/kernel/completion.hpp"
#include "pack/gpu/plan/pair_plan.hpp"
#include "pack/gpu/plan/plan.hpp"

namespace gapless::pack::gpu {

/// Issues one copy or kernel to `queue`, of the current device. Asynchronous. Of the two only a kernel completes
/// anything.
cudaError_t launch(const Launch& work, const Queue& queue, const Completion& completion = {}) noexcept;

/// Issues a batch that travels in parameters, or one of so many tiles that travels in a table. Always one kernel.
cudaError_t launch(const BatchPart& part, const Queue& queue, const Completion& completion) noexcept;
cudaError_t launch(const BatchTable& batch, std::uint32_t tiles, const Queue& queue) noexcept;

/// Issues a pair job, or a batch of them.
cudaError_t launch(const PairLaunch& work, const Queue& queue, const Completion& completion = {}) noexcept;
cudaError_t launch(const PairBatch& batch, const Queue& queue, const Completion& completion = {}) noexcept;

}  // namespace gapless::pack::gpu
