#include "pack/gpu/batch/batch.hpp"

#include <atomic>

namespace gapless::pack::gpu {

bool Batch::add(const FusedWork& work, const std::shared_ptr<Descriptor>& descriptor) {
  const std::span<const std::byte> bytes = bytes_of(work);
  const std::size_t units = work_units_ + (bytes.size() + work_unit - 1) / work_unit;
  const std::uint64_t tiles = tiles_ + tiles_of(work);
  const bool fits =
      tiles < std::uint64_t{1} << 31 && TableParts(tiles, jobs_.size() + 1, units).allocation() <= largest_table;
  if (!fits) return false;
  const BatchedJob job{tiles_, static_cast<std::uint32_t>(work_units_), tag_of(work)};
  if (descriptor && !has_lately_added(descriptor)) descriptors_.push_back(descriptor);
  if (works_.size() < units) works_.resize(2 * units);
  std::memcpy(works_.data() + job.position, bytes.data(), bytes.size());
  jobs_.push_back(job);
  tiles_ = static_cast<std::uint32_t>(tiles);
  work_units_ = units;
  return true;
}

// Jobs of few types mostly take turns.
bool Batch::has_lately_added(const std::shared_ptr<Descriptor>& descriptor) const noexcept {
  constexpr std::size_t few = 4;
  const auto lately = descriptors().last(std::min(descriptors_.size(), few));
  return std::find(lately.begin(), lately.end(), descriptor) != lately.end();
}

void Batch::clear() noexcept {
  static std::atomic<std::uint64_t> identities{0};
  jobs_.clear();
  work_units_ = 0;
  tiles_ = 0;
  identity_ = ++identities;
  descriptors_.clear();
}

void Batch::write_table(std::byte* to) const noexcept {
  const TableParts parts = table_parts();
  auto* group = reinterpret_cast<std::uint32_t*>(to);
  std::uint32_t tile = 0;
  for (std::uint32_t job = 0; job < job_count(); ++job) {
    for (; tile < first_tile(job + 1); tile += tiles_per_group) *group++ = job;
  }
  std::memcpy(to + parts.jobs, jobs_.data(), jobs_.size() * sizeof(BatchedJob));
  std::memcpy(to + parts.works, works_.data(), work_units_ * work_unit);
}

BatchTable Batch::table(const void* address, const Completion& completion) const noexcept {
  const TableParts parts = table_parts();
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return {completion, begin, begin + parts.jobs, begin + parts.works, job_count()};
}

BatchPart::BatchPart(const Batch& batch, std::uint32_t first) noexcept : batch_(batch), first_(first) {
  constexpr auto most = static_cast<std::uint32_t>(LargeBatch::max_jobs);
  for (end_ = std::min(batch.job_count(), first + most); work_bytes(end_) > LargeBatch::max_work_bytes; --end_) {
  }
}

}  // namespace gapless::pack::gpu
