// The GPU runtime interface, done with the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include "device/device.hpp"
#include "pack/cuda/context.hpp"
#include "pack/cuda/fused.hpp"
#include "pack/cuda/launches.hpp"
#include "pack/cuda/route.hpp"

namespace gapless::pack::cuda {

class CudaRuntime final : public device::Runtime {
 public:
  const char* name() const noexcept override { return "cuda"; }
  int device_count() noexcept override;
  std::string describe(int device) override;
  const char* last_error() noexcept override;
  device::Location locate(const void* pointer) noexcept override;
  std::uint64_t context(int device) noexcept override;
  bool has_context(std::uint64_t number) noexcept override { return is_there(number); }
  device::Status allocate(device::MemoryKind kind, int device, std::size_t bytes, void** result) noexcept override;
  void release(device::MemoryKind kind, int device, void* pointer) noexcept override;
  void* stream(int device) noexcept override;
  device::Status follow_default_stream(int device, void* stream) noexcept override;
  device::Status copy(void* destination, const void* source, std::size_t bytes, int device,
                      void* stream) noexcept override;
  device::Status synchronize(int device, void* stream) noexcept override;
  device::Status run(std::span<const Job> jobs, int device, void* stream) noexcept override;
  device::Status run_and_wait(std::span<const Job> jobs, int device, device::Reach reach) noexcept override;
  device::Status copy(const PairJob& job, int device, void* stream) noexcept override;
  device::Status enable_peer(int device, int peer) noexcept override;
  void force_engine(const char* name) noexcept override { router_.force(engine_named(name)); }

 private:
  /// By the route, behind `queue`; what is noted in the route is how it went in the end.
  device::Status run_and_wait(std::span<const Job> jobs, Route& route, int device, device::Reach reach,
                              Context& context, Lane& own, cudaStream_t queue) noexcept;

  Router router_;
};

}  // namespace gapless::pack::cuda
