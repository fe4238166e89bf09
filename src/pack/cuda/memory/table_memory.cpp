#include "pack/cuda/memory/table_memory.hpp"

#include "device/cuda/errors.hpp"
#include "device/cuda/scopes.hpp"

namespace gapless::pack::gpu {
namespace {

using device::cuda::OutsideCapture;
using device::cuda::result;

using device::Status;

cudaStream_t stream_of(void* stream) noexcept { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(const TableBlock& block) noexcept { return static_cast<cudaEvent_t>(block.mark); }

/// What a graph owns. Its end is no time to call CUDA, so nothing is left to be waited for.
struct OwnedTable {
  std::shared_ptr<CudaDescriptorMemory> memory;
  int device;
  std::size_t bytes;
  Upload upload;

  ~OwnedTable() { memory->release(device, upload, bytes); }
};

/// The graph that the stream is being captured into.
cudaError_t captured_graph(cudaStream_t queue, cudaGraph_t& graph) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
  return cudaStreamGetCaptureInfo(queue, &status, nullptr, &graph);
#else
  return cudaStreamGetCaptureInfo_v2(queue, &status, nullptr, &graph);
#endif
}

cudaError_t give_to_graph(std::unique_ptr<OwnedTable> table, cudaStream_t queue) noexcept {
  cudaGraph_t graph = nullptr;
  cudaError_t error = captured_graph(queue, graph);
  if (error != cudaSuccess) return error;
  const auto end = [](void* owned) { delete static_cast<OwnedTable*>(owned); };
  cudaUserObject_t object = nullptr;
  error = cudaUserObjectCreate(&object, table.get(), end, 1, cudaUserObjectNoDestructorSync);
  if (error != cudaSuccess) return error;
  table.release();
  error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
  if (error != cudaSuccess) cudaUserObjectRelease(object, 1);
  return error;
}

}  // namespace

bool CudaTableMemory::allocate(int, TableBlock& block) noexcept {
  const OutsideCapture outside;
  TableBlock made;
  cudaEvent_t event = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error == cudaSuccess) {
    error = cudaHostAlloc(reinterpret_cast<void**>(&made.staging), largest_table, cudaHostAllocPortable);
  }
  if (error == cudaSuccess) error = cudaMalloc(reinterpret_cast<void**>(&made.table), largest_table);
  if (error == cudaSuccess) {
    block = {made.staging, made.table, event};
    return true;
  }
  if (made.staging != nullptr) cudaFreeHost(made.staging);
  if (event != nullptr) cudaEventDestroy(event);
  cudaGetLastError();
  return false;
}

Status CudaTableMemory::upload(const TableBlock& block, std::size_t bytes, void* stream) noexcept {
  return result("copying a batch's table to the GPU",
                cudaMemcpyAsync(block.table, block.staging, bytes, cudaMemcpyHostToDevice, stream_of(stream)));
}

Status CudaTableMemory::mark(const TableBlock& block, void* stream) noexcept {
  return result("marking the last use of a batch's table", cudaEventRecord(event_of(block), stream_of(stream)));
}

Status CudaTableMemory::follow(const TableBlock& block, void* stream) noexcept {
  return result("waiting for a batch's table", cudaStreamWaitEvent(stream_of(stream), event_of(block), 0));
}

bool CudaTableMemory::has_passed(const TableBlock& block) noexcept {
  const OutsideCapture outside;
  const bool passed = cudaEventQuery(event_of(block)) == cudaSuccess;
  if (!passed) cudaGetLastError();
  return passed;
}

const void* table_in_graph(const std::shared_ptr<CudaDescriptorMemory>& memory, const Batch& batch, int device,
                           cudaStream_t queue) {
  const std::size_t bytes = batch.table_parts().allocation();
  const auto staging = std::make_unique<Word16[]>(bytes / sizeof(Word16) + 1);
  batch.write_table(reinterpret_cast<std::byte*>(staging.get()));
  Upload upload = memory->upload(device, staging.get(), bytes);
  if (upload.bytes == nullptr) return nullptr;
  const void* const address = upload.bytes;
  const bool has_arrived = memory->wait(upload);
  auto table = std::unique_ptr<OwnedTable>(new OwnedTable{memory, device, bytes, upload});
  if (has_arrived && give_to_graph(std::move(table), queue) == cudaSuccess) return address;
  cudaGetLastError();
  return nullptr;
}

}  // namespace gapless::pack::gpu
