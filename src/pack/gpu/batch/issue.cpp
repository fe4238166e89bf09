#include "pack/gpu/batch/issue.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/per_thread.hpp"
#include "model/gpu.hpp"
#include "pack/gpu/batch/job_cache.hpp"

namespace gapless::pack::gpu {
namespace {

using device::Status;

bool is_small(const Job& job) noexcept { return job.end - job.begin <= model::gpu_tuning.largest_batched_job; }

Status launch(const Batch& batch, LaunchSink& sink, bool is_last) {
  if (!batch.fits_parameters()) {
    if (const std::optional<Status> status = sink.launch_from_table(batch, is_last)) return *status;
  }
  Status status = Status::ok;
  for (std::uint32_t first = 0; first < batch.job_count() && status == Status::ok;) {
    const BatchPart part(batch, first);
    first = part.end();
    status = sink.launch(part, is_last && first == batch.job_count());
  }
  return status;
}

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
    const Status status = launch(batch_, sink_, false);
    batch_.clear();
    batch_.add(*work, planned.descriptor);
    return status;
  }

  Status finish() {
    const Status status = launch_large(batch_.empty());
    return status != Status::ok || batch_.empty() ? status : launch(batch_, sink_, true);
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

/// Has one of the few jobs before the same layout? Jobs of few types mostly take turns.
bool has_layout_before(std::span<const Job> jobs, std::size_t i) noexcept {
  constexpr std::size_t few = 4;
  const auto before = jobs.subspan(i - std::min(i, few), std::min(i, few));
  return std::any_of(before.begin(), before.end(), [&](const Job& job) { return job.layout == jobs[i].layout; });
}

/// A batch, found by the jobs that it was made for.
struct CachedBatch {
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

  void cache(std::span<const Job> made_for, int of_device, std::uint64_t of_planner) noexcept {
    try {
      layouts.clear();
      for (std::size_t i = 0; i < made_for.size(); ++i) {
        if (!has_layout_before(made_for, i)) layouts.push_back(made_for[i].layout->weak_from_this());
      }
      device = of_device;
      planner = of_planner;
      jobs.assign(made_for.begin(), made_for.end());
    } catch (const std::bad_alloc&) {
      jobs.clear();
    }
  }
};

/// A thread's last batches: the regions of a halo are the same in every step, in either direction.
class CachedBatches {
 public:
  /// The one for these jobs; nullptr if it is not cached.
  const Batch* find(std::span<const Job> jobs, int device, std::uint64_t planner) const noexcept {
    for (const CachedBatch& cached : cached_) {
      if (cached.is_for(jobs, device, planner)) return &cached.batch;
    }
    return nullptr;
  }

  /// The one to make the next batch in, whatever it was for.
  CachedBatch& oldest() noexcept {
    CachedBatch& cached = cached_[next_++ % cached_.size()];
    cached.jobs.clear();
    return cached;
  }

 private:
  std::array<CachedBatch, 4> cached_;
  std::size_t next_ = 0;
};

Status issue_one(Planner& planner, const Job& job, int device, LaunchSink& sink) {
  CachedJob& cached = of_this_thread<JobCache>().at(job, device, planner.identity());
  if (cached.launch) return sink.launch(*cached.launch, nullptr, true);
  const Planner::Planned planned = planner.plan(job, device);
  if (planned.out_of_memory) return Status::out_of_memory;
  if (std::holds_alternative<std::monostate>(planned.launch)) return Status::ok;
  if (!planned.descriptor) cached.launch = planned.launch;
  return sink.launch(planned.launch, planned.descriptor, true);
}

}  // namespace

Status issue(Planner& planner, std::span<const Job> jobs, int device, LaunchSink& sink) {
  if (jobs.empty()) return Status::ok;
  if (jobs.size() == 1) return issue_one(planner, jobs.front(), device, sink);
  auto& batches = of_this_thread<CachedBatches>();
  if (const Batch* batch = batches.find(jobs, device, planner.identity())) return launch(*batch, sink, true);
  CachedBatch& cached = batches.oldest();
  Issuer issuer(sink, cached.batch);
  for (const Job& job : jobs) {
    const bool fuses = is_small(job) && !planner.is_forced();
    Planner::Planned planned = planner.plan(job, device, fuses ? std::optional(Regime::nest) : std::nullopt);
    if (planned.out_of_memory) return Status::out_of_memory;
    if (const Status status = issuer.add(std::move(planned), is_small(job)); status != Status::ok) return status;
  }
  const Status status = issuer.finish();
  if (status == Status::ok && issuer.is_one_batch()) cached.cache(jobs, device, planner.identity());
  return status;
}

}  // namespace gapless::pack::gpu
