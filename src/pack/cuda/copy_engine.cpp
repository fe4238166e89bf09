#include "pack/cuda/copy_engine.hpp"

namespace gapless::pack::cuda {
namespace {

/// One end of a box.
struct End {
  void* start;
  std::size_t row_distance;
  std::size_t rows_in_plane;
};

cudaError_t issue(const BoxCopy& box, const End& to, const End& from, cudaStream_t stream) noexcept {
  if (box.rows * box.planes == 1) return cudaMemcpyAsync(to.start, from.start, box.row, cudaMemcpyDefault, stream);
  if (box.planes == 1) {
    return cudaMemcpy2DAsync(to.start, to.row_distance, from.start, from.row_distance, box.row, box.rows,
                             cudaMemcpyDefault, stream);
  }
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = {from.start, from.row_distance, from.row_distance, from.rows_in_plane};
  parameters.dstPtr = {to.start, to.row_distance, to.row_distance, to.rows_in_plane};
  parameters.extent = {box.row, box.rows, box.planes};
  parameters.kind = cudaMemcpyDefault;
  return cudaMemcpy3DAsync(&parameters, stream);
}

}  // namespace

cudaError_t issue_copies(const CopyPlan& plan, cudaStream_t stream) noexcept {
  for (int i = 0; i < plan.count; ++i) {
    const BoxCopy& box = plan.copies[i];
    const std::size_t rows_in_plane = box.planes > 1 ? box.plane_distance / box.row_distance : box.rows;
    const End memory{reinterpret_cast<void*>(box.memory), box.row_distance, rows_in_plane};
    const End packed{reinterpret_cast<void*>(box.packed), box.row, box.rows};
    const cudaError_t error = plan.unpack ? issue(box, memory, packed, stream) : issue(box, packed, memory, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace gapless::pack::cuda
