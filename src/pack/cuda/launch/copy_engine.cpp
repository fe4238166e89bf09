#include "pack/cuda/launch/copy_engine.hpp"

#include "device/cuda/driver_function.hpp"
#include "device/cuda/scopes.hpp"
#include "device/device.hpp"

namespace gapless::pack::gpu {
namespace {

using device::cuda::driver_function;
using device::cuda::OutsideCapture;

/// One end of a box.
struct End {
  void* start;
  std::size_t row_distance;
  std::size_t rows_in_plane;
};

bool crosses_bus(const void* memory, const void* packed) noexcept {
  using device::MemoryKind;
  return device::locate(packed).kind == MemoryKind::pinned && device::locate(memory).kind == MemoryKind::device;
}

/// Told where both ends are, the driver need not find out, which saves half a microsecond.
cudaMemcpyKind kind_of(const CopyPlan& plan) noexcept {
  const BoxCopy& first = plan.copies[0];
  if (!crosses_bus(reinterpret_cast<const void*>(first.memory), reinterpret_cast<const void*>(first.packed))) {
    return cudaMemcpyDefault;
  }
  return plan.unpack ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
}

cudaError_t issue(const BoxCopy& box, const End& to, const End& from, cudaMemcpyKind kind,
                  cudaStream_t stream) noexcept {
  if (box.rows * box.planes == 1) return cudaMemcpyAsync(to.start, from.start, box.row, kind, stream);
  if (box.planes == 1) {
    return cudaMemcpy2DAsync(to.start, to.row_distance, from.start, from.row_distance, box.row, box.rows, kind, stream);
  }
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = {from.start, from.row_distance, from.row_distance, from.rows_in_plane};
  parameters.dstPtr = {to.start, to.row_distance, to.row_distance, to.rows_in_plane};
  parameters.extent = {box.row, box.rows, box.planes};
  parameters.kind = kind;
  return cudaMemcpy3DAsync(&parameters, stream);
}

}  // namespace

cudaError_t issue_copies(const CopyPlan& plan, cudaStream_t stream) noexcept {
  const cudaMemcpyKind kind = kind_of(plan);
  for (int i = 0; i < plan.count; ++i) {
    const BoxCopy& box = plan.copies[i];
    const std::size_t rows_in_plane = box.planes > 1 ? box.plane_distance / box.row_distance : box.rows;
    const End memory{reinterpret_cast<void*>(box.memory), box.row_distance, rows_in_plane};
    const End packed{reinterpret_cast<void*>(box.packed), box.row, box.rows};
    const cudaError_t error =
        plan.unpack ? issue(box, memory, packed, kind, stream) : issue(box, packed, memory, kind, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t wait_for_copies(cudaStream_t stream) noexcept {
  const OutsideCapture outside;
  constexpr int queries = 256;  // about 100 microseconds
  static const auto query = driver_function<decltype(&cuStreamQuery)>("cuStreamQuery");
  for (int i = 0; query != nullptr && i < queries; ++i) {
    if (query(stream) == CUDA_SUCCESS) return cudaSuccess;
  }
  return cudaStreamSynchronize(stream);
}

}  // namespace gapless::pack::gpu
