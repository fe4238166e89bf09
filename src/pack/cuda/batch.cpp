#include "pack/cuda/batch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gapless::pack::cuda {
namespace {

using device::Status;

constexpr Offset largest_batched_job = Offset{1} << 20;  // beyond, a job runs longer than its launch takes

bool is_small(const Job& job) noexcept { return job.end - job.begin <= largest_batched_job; }

}  // namespace

SmallBatch Batch::small_parameters() const noexcept {
  SmallBatch small;
  small.completion = {};
  small.job_count = parameters_.job_count;
  std::copy_n(parameters_.entries, parameters_.job_count, small.entries);
  std::memcpy(small.works, parameters_.works, work_bytes_);
  return small;
}

bool Batch::add(const FusedWork& work, const std::shared_ptr<Descriptor>& descriptor) {
  const std::span<const std::byte> bytes = bytes_of(work);
  const std::size_t rounded = (bytes.size() + work_unit - 1) / work_unit * work_unit;
  const std::uint64_t end_tile = tiles() + tiles_of(work);
  if (parameters_.job_count == LargeBatch::max_jobs || work_bytes_ + rounded > LargeBatch::max_work_bytes ||
      end_tile >= std::uint64_t{1} << 31) {
    return false;
  }
  if (descriptor) descriptors_.push_back(descriptor);
  std::memcpy(parameters_.works + work_bytes_, bytes.data(), bytes.size());
  parameters_.entries[parameters_.job_count++] = {static_cast<std::uint32_t>(end_tile),
                                                  static_cast<std::uint16_t>(work_bytes_ / work_unit), tag_of(work)};
  work_bytes_ += rounded;
  return true;
}

void Batch::clear() noexcept {
  parameters_.job_count = 0;
  work_bytes_ = 0;
  descriptors_.clear();
}

namespace {

/// Gathers jobs, one launch behind, so that the last launch is known as such.
class Issuer {
 public:
  Issuer(LaunchSink& sink, Batch& batch) : sink_(sink), batch_(batch) { batch_.clear(); }
  ~Issuer() { batch_.clear(); }
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  Status add(Planner::Planned&& planned, bool is_small) {
    if (std::holds_alternative<std::monostate>(planned.launch)) return Status::ok;
    const std::optional<FusedWork> work = is_small ? fused(planned.launch) : std::nullopt;
    if (!work) {
      const Status status = launch_large(false);
      large_ = std::move(planned);
      return status;
    }
    if (batch_.add(*work, planned.descriptor)) return Status::ok;
    const Status status = sink_.launch(batch_, false);
    batch_.clear();
    batch_.add(*work, planned.descriptor);
    return status;
  }

  Status finish() {
    const Status status = launch_large(batch_.empty());
    return status != Status::ok || batch_.empty() ? status : sink_.launch(batch_, true);
  }

 private:
  Status launch_large(bool is_last) {
    const Planner::Planned large = std::exchange(large_, {});
    if (std::holds_alternative<std::monostate>(large.launch)) return Status::ok;
    return sink_.launch(large.launch, large.descriptor, is_last);
  }

  LaunchSink& sink_;
  Batch& batch_;
  Planner::Planned large_;  ///< has a launch of its own, yet to be made
};

Status issue_one(Planner& planner, const Job& job, int device, LaunchSink& sink) {
  const Planner::Planned planned = planner.plan(job, device);
  if (planned.out_of_memory) return Status::out_of_memory;
  if (std::holds_alternative<std::monostate>(planned.launch)) return Status::ok;
  return sink.launch(planned.launch, planned.descriptor, true);
}

}  // namespace

Status issue(Planner& planner, std::span<const Job> jobs, int device, LaunchSink& sink) {
  if (jobs.size() == 1) return issue_one(planner, jobs.front(), device, sink);
  thread_local const auto batch = std::make_unique<Batch>();
  Issuer issuer(sink, *batch);
  for (const Job& job : jobs) {
    const bool fuses = is_small(job) && !planner.is_forced();
    Planner::Planned planned = planner.plan(job, device, fuses ? std::optional(Regime::nest) : std::nullopt);
    if (planned.out_of_memory) return Status::out_of_memory;
    if (const Status status = issuer.add(std::move(planned), is_small(job)); status != Status::ok) return status;
  }
  return issuer.finish();
}

}  // namespace gapless::pack::cuda
