#include "pack/cuda/batch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "pack/cuda/kept.hpp"
#include "pack/of_thread.hpp"

namespace gapless::pack::cuda {
namespace {

using device::Status;

constexpr Offset largest_batched_job = Offset{1} << 20;  // beyond, a job runs longer than its launch takes

bool is_small(const Job& job) noexcept { return job.end - job.begin <= largest_batched_job; }

}  // namespace

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
  parameters_.end_tiles[parameters_.job_count] = static_cast<std::uint32_t>(end_tile);
  parameters_.entries[parameters_.job_count++] = {static_cast<std::uint16_t>(work_bytes_ / work_unit), tag_of(work)};
  work_bytes_ += rounded;
  return true;
}

void Batch::clear() noexcept {
  std::fill_n(parameters_.end_tiles, parameters_.job_count, ~0u);
  parameters_.job_count = 0;
  work_bytes_ = 0;
  descriptors_.clear();
}

namespace {

/// Gathers jobs, one launch behind, so that the last launch is known as such.
class Issuer {
 public:
  Issuer(LaunchSink& sink, Batch& batch) : sink_(sink), batch_(batch) { batch_.clear(); }
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  Status add(Planner::Planned&& planned, bool is_small) {
    if (std::holds_alternative<std::monostate>(planned.launch)) return Status::ok;
    const std::optional<FusedWork> work = is_small ? fused(planned.launch) : std::nullopt;
    if (!work) {
      is_one_batch_ = false;
      const Status status = launch_large(false);
      large_ = std::move(planned);
      return status;
    }
    if (batch_.add(*work, planned.descriptor)) return Status::ok;
    is_one_batch_ = false;
    const Status status = sink_.launch(batch_, false);
    batch_.clear();
    batch_.add(*work, planned.descriptor);
    return status;
  }

  Status finish() {
    const Status status = launch_large(batch_.empty());
    return status != Status::ok || batch_.empty() ? status : sink_.launch(batch_, true);
  }

  /// Is the batch all that was launched?
  bool is_one_batch() const noexcept { return is_one_batch_ && !batch_.empty(); }

 private:
  Status launch_large(bool is_last) {
    const Planner::Planned large = std::exchange(large_, {});
    if (std::holds_alternative<std::monostate>(large.launch)) return Status::ok;
    return sink_.launch(large.launch, large.descriptor, is_last);
  }

  LaunchSink& sink_;
  Batch& batch_;
  Planner::Planned large_;  ///< has a launch of its own, yet to be made
  bool is_one_batch_ = true;
};

/// A batch with the jobs that it was made for.
struct KeptBatch {
  Batch batch;
  std::vector<Job> jobs;  ///< empty: it is no longer, or never was, all of a call
  std::vector<std::weak_ptr<const Layout>> layouts;
  std::uint64_t planner = 0;
  int device = -1;

  bool is_for(std::span<const Job> wanted, int wanted_device, std::uint64_t wanted_planner) const noexcept {
    return std::equal(jobs.begin(), jobs.end(), wanted.begin(), wanted.end(), is_same) && device == wanted_device &&
           planner == wanted_planner &&
           std::none_of(layouts.begin(), layouts.end(), [](const auto& layout) { return layout.expired(); });
  }

  void remember(std::span<const Job> made_for, int of_device, std::uint64_t of_planner) noexcept {
    try {
      layouts.clear();
      for (const Job& job : made_for) layouts.push_back(job.layout->weak_from_this());
      device = of_device;
      planner = of_planner;
      jobs.assign(made_for.begin(), made_for.end());
    } catch (const std::bad_alloc&) {
      jobs.clear();
    }
  }
};

/// A thread's last batches: the regions of a halo are the same in every step, in either direction.
class KeptBatches {
 public:
  /// The one for these jobs; nullptr if it is not kept.
  const Batch* find(std::span<const Job> jobs, int device, std::uint64_t planner) const noexcept {
    for (const KeptBatch& kept : kept_) {
      if (kept.is_for(jobs, device, planner)) return &kept.batch;
    }
    return nullptr;
  }

  /// The one to make the next batch in, whatever it was for.
  KeptBatch& oldest() noexcept {
    KeptBatch& kept = kept_[next_++ % kept_.size()];
    kept.jobs.clear();
    return kept;
  }

 private:
  std::array<KeptBatch, 4> kept_;
  std::size_t next_ = 0;
};

Status issue_one(Planner& planner, const Job& job, int device, LaunchSink& sink) {
  auto& kept = of_this_thread<KeptByJob<Launch>>();
  if (const Launch* work = kept.find(job, device, planner.identity())) return sink.launch(*work, nullptr, true);
  const Planner::Planned planned = planner.plan(job, device);
  if (planned.out_of_memory) return Status::out_of_memory;
  if (std::holds_alternative<std::monostate>(planned.launch)) return Status::ok;
  if (!planned.descriptor) kept.remember(job, device, planner.identity(), planned.launch);
  return sink.launch(planned.launch, planned.descriptor, true);
}

}  // namespace

Status issue(Planner& planner, std::span<const Job> jobs, int device, LaunchSink& sink) {
  if (jobs.empty()) return Status::ok;
  if (jobs.size() == 1) return issue_one(planner, jobs.front(), device, sink);
  auto& batches = of_this_thread<KeptBatches>();
  if (const Batch* batch = batches.find(jobs, device, planner.identity())) return sink.launch(*batch, true);
  KeptBatch& kept = batches.oldest();
  Issuer issuer(sink, kept.batch);
  for (const Job& job : jobs) {
    const bool fuses = is_small(job) && !planner.is_forced();
    Planner::Planned planned = planner.plan(job, device, fuses ? std::optional(Regime::nest) : std::nullopt);
    if (planned.out_of_memory) return Status::out_of_memory;
    if (const Status status = issuer.add(std::move(planned), is_small(job)); status != Status::ok) return status;
  }
  const Status status = issuer.finish();
  if (status == Status::ok && issuer.is_one_batch()) kept.remember(jobs, device, planner.identity());
  return status;
}

}  // namespace gapless::pack::cuda
