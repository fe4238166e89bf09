// Reductions by CUDA kernels: a block of threads for each tile, and 16 bytes a thread where addresses allow.
#include <cuda_runtime.h>

#include "device/cuda/context.hpp"
#include "device/cuda/errors.hpp"
#include "reduction/gpu_reducer.hpp"
#include "reduction/tile.hpp"

namespace gapless::reduction {
namespace {

template <class Number, class Operation, int count>
__global__ void __launch_bounds__(pack::gpu::threads_per_block) reduce_kernel(const __grid_constant__ Job job) {
  reduce_tile<Number, Operation, count>(job, blockIdx.x, pack::gpu::DeviceBlock{});
}

using Kernel = void (*)(Job);

Kernel kernel_of(const Job& job) noexcept {
  return visit(job.reduction, [&]<class Number, class Operation>(Number, Operation) -> Kernel {
    if (is_aligned(job)) return reduce_kernel<Number, Operation, widest<Number>>;
    return reduce_kernel<Number, Operation, 1>;
  });
}

class CudaReducer final : public GpuReducer {
 public:
  device::Status reduce(const Job& job, int device, void* stream) noexcept override {
    const device::cuda::InContext here(device);
    if (here.error() != cudaSuccess) return device::cuda::failed("choosing the GPU", here.error());
    if (job.numbers == 0) return device::Status::ok;
    void* parameters[] = {const_cast<Job*>(&job)};
    const auto kernel = reinterpret_cast<const void*>(kernel_of(job));
    return device::cuda::result("reducing on the GPU", cudaLaunchKernel(kernel, static_cast<unsigned>(tiles_of(job)),
                                                                        pack::gpu::threads_per_block, parameters, 0,
                                                                        static_cast<cudaStream_t>(stream)));
  }
};

}  // namespace
}  // namespace gapless::reduction

extern "C" __attribute__((visibility("default"))) gapless::reduction::GpuReducer* gapless_reduction_open(
    int interface_version) {
  if (interface_version != gapless_reduction_interface_version) return nullptr;
  // Never destroyed: at exit the driver may be gone first.
  static auto* const reducer = new gapless::reduction::CudaReducer;
  return reducer;
}
