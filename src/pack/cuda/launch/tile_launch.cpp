#include "pack/cuda/launch/tile_launch.hpp"

#include <array>
#include <limits>

#include "device/cuda/driver_function.hpp"
#include "device/cuda/driver_numbers.hpp"
#include "pack/gpu/kernel/words.hpp"

namespace gapless::pack::gpu {
namespace {

using device::cuda::as_runtime_error;
using device::cuda::current_context_number;
using device::cuda::driver_function;

struct Driver {
  decltype(&cuLaunchKernelEx) launch = driver_function<decltype(&cuLaunchKernelEx)>("cuLaunchKernelEx");
};

const Driver& driver() noexcept {
  static const Driver functions;
  return functions;
}

bool may_launch_early() noexcept {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

/// A kernel as one context knows it.
struct Loaded {
  const void* kernel = nullptr;
  std::uint64_t context = 0;  ///< its number
  cudaFunction_t function = nullptr;
  bool may_launch_early = false;
};

thread_local std::uint64_t preparations = 0;

/// Each thread has cached the kernels that it launched last.
cudaError_t find(const void* kernel, std::uint64_t context, const Loaded*& found) noexcept {
  thread_local std::array<Loaded, 64> cached;
  constexpr std::size_t least_code = 16;  // bytes of a kernel's host function, of which `kernel` is the address
  Loaded& slot = cached[reinterpret_cast<std::uintptr_t>(kernel) / least_code % cached.size()];
  found = &slot;
  if (slot.kernel == kernel && slot.context == context) return cudaSuccess;
  ++preparations;
  Loaded loaded{kernel, context, nullptr, may_launch_early()};
  const cudaError_t error = cudaGetFuncBySymbol(&loaded.function, kernel);
  if (error == cudaSuccess) slot = loaded;
  return error;
}

cudaError_t launch_by_driver(const KernelLaunch& launch, bool may_launch_early, cudaStream_t stream) noexcept {
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = launch.blocks.x;
  config.blockDimX = launch.threads.x;
  config.blockDimY = launch.threads.y;
  config.gridDimY = config.gridDimZ = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &early;
  config.numAttrs = may_launch_early ? 1 : 0;
  return as_runtime_error(driver().launch(&config, launch.function, pointers_to(launch.parameters).data(), nullptr));
}

bool has_launched_as_graph(const KernelLaunch& launch, const Queue& queue) noexcept {
  if (queue.graphs == nullptr) return false;
  const std::uint64_t made_before = queue.graphs->made();
  const bool launched = queue.graphs->launch(launch, queue.stream) == cudaSuccess;
  preparations += queue.graphs->made() - made_before;
  return launched;
}

}  // namespace

cudaError_t launch_tiles(const void* kernel, std::uint64_t tiles, int tiles_per_block, const Queue& queue,
                         std::span<const KernelParameter> parameters) noexcept {
  if (tiles > std::numeric_limits<std::int32_t>::max()) return cudaErrorInvalidConfiguration;
  const auto side_by_side = static_cast<unsigned>(tiles_per_block);
  const dim3 blocks((static_cast<unsigned>(tiles) + side_by_side - 1) / side_by_side);
  const dim3 threads(threads_per_block, side_by_side);
  const std::uint64_t context = driver().launch != nullptr ? current_context_number() : 0;
  if (context == 0) {  // the runtime has yet to choose it
    return cudaLaunchKernel(kernel, blocks, threads, pointers_to(parameters).data(), 0, queue.stream);
  }
  const Loaded* loaded = nullptr;
  const cudaError_t error = find(kernel, context, loaded);
  if (error != cudaSuccess) return error;
  const KernelLaunch launch{loaded->function, blocks, threads, parameters};
  if (has_launched_as_graph(launch, queue)) return cudaSuccess;
  return launch_by_driver(launch, loaded->may_launch_early, queue.stream);
}

std::uint64_t launches_prepared() noexcept { return preparations; }

}  // namespace gapless::pack::gpu
