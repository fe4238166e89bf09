#include "pack/cuda/launches.hpp"

#include "device/cuda/errors.hpp"
#include "device/cuda/streams.hpp"
#include "pack/cuda/kernels/kernels.hpp"

namespace gapless::pack::gpu {

using device::cuda::failed;
using device::cuda::is_capturing;

using device::Status;

Status LaunchMemory::use(std::span<const std::shared_ptr<Descriptor>> used, cudaStream_t queue) {
  const bool captured = !used.empty() && is_capturing(queue);
  for (const auto& descriptor : used) {
    if (captured) descriptors.hold(descriptor);
    if (!descriptor->follow(queue)) return Status::failed;
  }
  return Status::ok;
}

Status Launches::launch(const Launch& work, const std::shared_ptr<Descriptor>& descriptor, bool is_last) {
  if (descriptor) {
    if (const Status status = memory_.use({&descriptor, 1}, queue_.stream); status != Status::ok) return status;
  }
  if (!is_last || completion_.flag == nullptr) return launched(gpu::launch(work, queue(is_last)), false);
  if (const auto row = short_copy(work)) return launched(gpu::launch(Launch(*row), queue_, completion_), true);
  return launched(gpu::launch(work, queue_, completion_), !std::holds_alternative<ContiguousWork>(work));
}

Status Launches::launch(const PlannedPair& planned, bool is_last) {
  if (const auto* row = std::get_if<ContiguousWork>(&planned.launch)) return launch(Launch(*row), nullptr, is_last);
  for (const auto& descriptor : {planned.source, planned.destination}) {
    if (!descriptor) continue;
    if (const Status status = memory_.use({&descriptor, 1}, queue_.stream); status != Status::ok) return status;
  }
  if (std::holds_alternative<std::monostate>(planned.launch)) return Status::ok;
  return launched(gpu::launch(planned.launch, queue(is_last), completion(is_last)), is_last);
}

Status Launches::launch(const PairBatch& batch, bool is_last) {
  return launched(gpu::launch(batch, queue(is_last), completion(is_last)), is_last);
}

Status Launches::launch(const BatchPart& part, bool is_last) {
  if (const Status status = memory_.use(part.batch().descriptors(), queue_.stream); status != Status::ok) return status;
  return launched(gpu::launch(part, queue(is_last), completion(is_last)), is_last);
}

std::optional<Status> Launches::launch_from_table(const Batch& batch, bool is_last) {
  if (const Status status = memory_.use(batch.descriptors(), queue_.stream); status != Status::ok) return status;
  const auto launch = [&](const void* table) {
    const BatchTable parameters = batch.table(table, completion(is_last));
    return launched(gpu::launch(parameters, batch.tiles(), queue(is_last)), is_last);
  };
  if (!is_capturing(queue_.stream)) return memory_.tables.run(batch, device_, queue_.stream, launch);
  const void* const table = table_in_graph(memory_.descriptor_memory, batch, device_, queue_.stream);
  return table != nullptr ? std::optional(launch(table)) : std::nullopt;
}

Status Launches::launched(cudaError_t error, bool completes) noexcept {
  if (error != cudaSuccess) return failed("starting a pack or unpack kernel", error);
  under_way_ = true;
  completes_ = completes && completion_.flag != nullptr;
  return Status::ok;
}

}  // namespace gapless::pack::gpu
