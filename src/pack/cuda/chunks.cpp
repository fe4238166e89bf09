#include "pack/cuda/chunks.hpp"

namespace gapless::pack::cuda {
namespace {

using device::Status;

bool fills_sectors(const Layout& layout) {
  constexpr Offset sector = 32;
  if (layout.core == layout::Core::index) return fills_sectors(*layout.child);
  return !layout.is_strided() || layout.length % sector == 0;
}

/// Blocks that kernels unpack so slowly that the last chunk's kernel takes as long as all chunks save.
bool is_sparse(const Layout& layout) {
  constexpr Offset short_block = 8, line = 64;
  return layout.is_strided() && layout.length <= short_block && !layout.modes.empty() && layout.modes[0].stride >= line;
}

/// Multiprocessors read host memory in requests of 128 bytes, copy engines in longer ones: a twelfth faster, a sixth
/// where a kernel also writes parts of sectors. Below, starting the chunks costs more than that saves.
Offset smallest_job(const Layout& layout) {
  constexpr Offset mebibyte = Offset{1} << 20;
  if (is_sparse(layout)) return 48 * mebibyte;
  return fills_sectors(layout) ? 11 * mebibyte : 5 * mebibyte;
}

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

bool pays_in_chunks(const Job& job, Traffic traffic) noexcept {
  return traffic == Traffic::from_host && job.end - job.begin >= smallest_job(*job.layout);
}

Offset end_of_chunk(Offset begin, Offset end) noexcept {
  constexpr Offset last_chunk = Offset{2} << 20;  // no copy hides its kernel
  const Offset left = end - begin;
  if (left <= last_chunk) return end;
  return left - last_chunk <= largest_chunk ? end - last_chunk : begin + largest_chunk;
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

}  // namespace gapless::pack::cuda
