#include "pack/gpu/batch/chunks.hpp"

namespace gapless::pack::gpu {
namespace {

using device::Status;

constexpr const model::GpuTuning& tuning = model::gpu_tuning;

/// Launches that others follow.
class FollowedLaunches final : public LaunchSink {
 public:
  explicit FollowedLaunches(LaunchSink& sink) : sink_(sink) {}
  Status launch(const Launch& work, const std::shared_ptr<Descriptor>& descriptor, bool) override {
    return sink_.launch(work, descriptor, false);
  }
  Status launch(const BatchPart& part, bool) override { return sink_.launch(part, false); }
  std::optional<Status> launch_from_table(const Batch& batch, bool) override {
    return sink_.launch_from_table(batch, false);
  }

 private:
  LaunchSink& sink_;
};

}  // namespace

Offset end_of_chunk(Offset begin, Offset end) noexcept {
  const Offset left = end - begin;
  if (left <= tuning.last_chunk) return end;
  return left - tuning.last_chunk <= largest_chunk ? end - tuning.last_chunk : begin + largest_chunk;
}

Status issue_in_chunks(Planner& planner, const Job& job, int device, LaunchSink& sink, ChunkBuffers& buffers) {
  FollowedLaunches followed(sink);
  const auto* host = static_cast<const std::byte*>(job.packed);
  Job chunk = job;
  for (Offset begin = job.begin; begin < job.end; begin = chunk.end) {
    chunk.begin = begin;
    chunk.end = end_of_chunk(begin, job.end);
    Status status =
        buffers.bring(host + (begin - job.begin), static_cast<std::size_t>(chunk.end - begin), chunk.packed);
    LaunchSink& launches = chunk.end == job.end ? sink : followed;
    if (status == Status::ok) status = issue(planner, {&chunk, 1}, device, launches);
    if (status == Status::ok) status = buffers.done();
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

}  // namespace gapless::pack::gpu
