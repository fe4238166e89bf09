// The nest regime's kernels, in two files so that two processors can compile them.
#pragma once

#include <cuda_runtime_api.h>

#include "pack/cuda/launch/tile_launch.hpp"
#include "pack/gpu/kernel/completion.hpp"
#include "pack/gpu/regimes/nest.hpp"

namespace gapless::pack::gpu {

/// Precondition: words of 4 bytes.
cudaError_t launch_nest_of_4(const NestWork<std::uint32_t>& work, const Queue& queue,
                             const Completion& completion) noexcept;

/// For all other words.
cudaError_t launch_nest(const NestWork<std::uint32_t>& work, const Queue& queue, const Completion& completion) noexcept;
cudaError_t launch_nest(const NestWork<std::uint64_t>& work, const Queue& queue, const Completion& completion) noexcept;

}  // namespace gapless::pack::gpu
