// The nest regime's kernels, in two files so that two processors can compile them.
#pragma once

#include <cuda_runtime_api.h>

#include "pack/cuda/completion.hpp"
#include "pack/cuda/regimes/nest.hpp"
#include "pack/cuda/tile_launch.hpp"

namespace gapless::pack::cuda {

/// Precondition: words of 4 bytes.
cudaError_t launch_nest_of_4(const NestWork<std::uint32_t>& work, const Queue& queue,
                             const Completion& completion) noexcept;

/// For all other words.
cudaError_t launch_nest(const NestWork<std::uint32_t>& work, const Queue& queue, const Completion& completion) noexcept;
cudaError_t launch_nest(const NestWork<std::uint64_t>& work, const Queue& queue, const Completion& completion) noexcept;

}  // namespace gapless::pack::cuda
