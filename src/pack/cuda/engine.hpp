// The GPU engine, done with CUDA kernels and copies.
#pragma once

#include <cuda_runtime_api.h>

#include "device/cuda/context.hpp"
#include "pack/cuda/state.hpp"
#include "pack/gpu/route/route.hpp"
#include "pack/gpu_engine.hpp"

namespace gapless::pack::gpu {

/// Where jobs that are waited for are issued.
struct Waiting {
  device::cuda::Lane* lane = nullptr;
  LaneState* state = nullptr;    ///< in the lane
  cudaStream_t queue = nullptr;  ///< the legacy stream, or the lane's where that must not be touched
};

class CudaEngine final : public GpuEngine {
 public:
  device::Status run(std::span<const Job> jobs, int device, void* stream) noexcept override;
  Ticket submit(std::span<const Job> jobs, int device, Reach reach) noexcept override;
  Ticket submit_section(const Job& job, int device, Reach reach) noexcept override;
  Ticket submit(std::span<const PairJob> jobs, int device) noexcept override;
  void poll(Ticket& ticket) noexcept override;
  device::Status wait(Ticket& ticket) noexcept override;
  device::Status copy(const PairJob& job, int device, void* stream) noexcept override;
  void force_engine(const char* name) noexcept override { router_.force(engine_named(name)); }

 private:
  Ticket submit(std::span<const Job> jobs, int device, Reach reach, bool is_section) noexcept;

  Router router_;
};

}  // namespace gapless::pack::gpu
