// The copies of a plan as calls of the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include "pack/cuda/copy_plan.hpp"
#include "pack/cuda/run_copies.hpp"

namespace gapless::pack::cuda {

/// Issues the copies to `stream` of the current device, in order. After a failure some may have been issued.
cudaError_t issue_copies(const CopyPlan& plan, cudaStream_t stream) noexcept;

/// The same in any order, runs_in_a_call at a time. Refused by the legacy stream, by streams that are being captured
/// and by drivers before 12.8, and refused where it is not between GPU and page-locked memory.
cudaError_t issue_copies(const RunCopies& runs, cudaStream_t stream) noexcept;

/// The same as cudaStreamSynchronize, sooner by half a microsecond where that takes few.
cudaError_t wait_for_copies(cudaStream_t stream) noexcept;

}  // namespace gapless::pack::cuda
