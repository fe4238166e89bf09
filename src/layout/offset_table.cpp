#include "layout/offset_table.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace gapless::layout {

struct OffsetTable::Runs {
  OffsetTable firsts;
  OffsetTable offsets;
  Offset stride;
};

OffsetTable::OffsetTable(std::span<const Offset> values) : size_(values.size()) {
  using Narrow = std::numeric_limits<std::int32_t>;
  is_narrow_ =
      std::ranges::all_of(values, [](Offset value) { return value >= Narrow::min() && value <= Narrow::max(); });
  if (values.empty()) return;
  if (is_narrow_) {
    auto entries = std::make_shared_for_overwrite<std::int32_t[]>(values.size());
    std::ranges::transform(values, entries.get(), [](Offset value) { return static_cast<std::int32_t>(value); });
    narrow_ = {entries.get(), values.size()};
    owner_ = std::move(entries);
  } else {
    auto entries = std::make_shared_for_overwrite<std::int64_t[]>(values.size());
    std::ranges::copy(values, entries.get());
    wide_ = {entries.get(), values.size()};
    owner_ = std::move(entries);
  }
}

namespace {

/// The distance that most entries have from the one before, if there is such a one (Boyer and Moore's vote).
template <class Value>
Offset commonest_distance(std::span<const Value> values) {
  Offset candidate = 0, votes = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Offset distance = Offset{values[i]} - Offset{values[i - 1]};
    if (votes == 0) candidate = distance;
    votes += distance == candidate ? 1 : -1;
  }
  return candidate;
}

/// The longest runs of one stride, from the first entry on; nothing if there are more than `limit`.
template <class Value>
std::vector<OffsetRun> runs_of(std::span<const Value> values, Offset stride, std::size_t limit) {
  const auto begins = [&](std::size_t i) { return i == 0 || Offset{values[i]} - Offset{values[i - 1]} != stride; };
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size() && count <= limit; ++i) count += begins(i);
  if (count > limit) return {};
  std::vector<OffsetRun> runs;
  runs.reserve(count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (begins(i)) {
      runs.push_back({static_cast<Offset>(i), values[i], 1, stride});
    } else {
      ++runs.back().count;
    }
  }
  return runs;
}

/// Nothing if runs do not take less than half of the memory.
template <class Value>
std::vector<OffsetRun> few_runs_of(std::span<const Value> values) {
  // A run takes two entries.
  constexpr std::size_t least_mean = 4;
  return runs_of(values, commonest_distance(values), values.size() / least_mean);
}

}  // namespace

OffsetTable OffsetTable::compressed(std::span<const Offset> values) {
  const std::vector<OffsetRun> runs = few_runs_of(values);
  return runs.empty() ? OffsetTable(values) : of_runs(runs);
}

OffsetTable OffsetTable::taking(std::vector<std::int32_t>&& values, bool compressed) {
  if (compressed) {
    const std::vector<OffsetRun> runs = few_runs_of(std::span<const std::int32_t>(values));
    if (!runs.empty()) return of_runs(runs);
  }
  if (values.size() < values.capacity() / 4 * 3) values.shrink_to_fit();
  OffsetTable table;
  table.size_ = values.size();
  auto owner = std::make_shared<const std::vector<std::int32_t>>(std::move(values));
  table.narrow_ = *owner;
  table.owner_ = std::move(owner);
  return table;
}

OffsetTable OffsetTable::of_runs(std::span<const OffsetRun> runs) {
  std::vector<Offset> firsts, offsets;
  firsts.reserve(runs.size() + 1);
  offsets.reserve(runs.size());
  for (const OffsetRun& run : runs) {
    firsts.push_back(run.first);
    offsets.push_back(run.offset);
  }
  firsts.push_back(runs.back().first + runs.back().count);
  OffsetTable table;
  table.size_ = static_cast<std::size_t>(firsts.back());
  table.runs_ = std::make_shared<const Runs>(Runs{OffsetTable(firsts), OffsetTable(offsets), runs.front().stride});
  return table;
}

std::size_t OffsetTable::run_count() const noexcept { return runs_ ? runs_->offsets.size() : size_; }

const OffsetTable& OffsetTable::run_firsts() const noexcept { return runs_->firsts; }

const OffsetTable& OffsetTable::run_offsets() const noexcept { return runs_->offsets; }

OffsetRun OffsetTable::run(std::size_t i) const noexcept {
  if (!runs_) return {static_cast<Offset>(i), (*this)[i], 1, 0};
  const Offset first = runs_->firsts[i];
  return {first, runs_->offsets[i], runs_->firsts[i + 1] - first, runs_->stride};
}

std::size_t OffsetTable::run_of(Offset entry) const noexcept {
  if (!runs_) return static_cast<std::size_t>(entry);
  const OffsetTable& firsts = runs_->firsts;
  const auto find = [entry](auto span) { return std::ranges::upper_bound(span, entry) - span.begin() - 1; };
  return static_cast<std::size_t>(firsts.is_narrow() ? find(firsts.narrow()) : find(firsts.wide()));
}

Offset OffsetTable::entry_of_runs(Offset i) const noexcept {
  const OffsetRun found = run(run_of(i));
  return found.offset + (i - found.first) * found.stride;
}

OffsetTable OffsetTable::expanded() const {
  if (!runs_) return *this;
  std::vector<Offset> values;
  values.reserve(size_);
  for (std::size_t i = 0; i < run_count(); ++i) {
    const OffsetRun entries = run(i);
    for (Offset k = 0; k < entries.count; ++k) values.push_back(entries.offset + k * entries.stride);
  }
  return OffsetTable(values);
}

std::size_t OffsetTable::memory_bytes() const noexcept {
  if (runs_) return sizeof(Runs) + runs_->firsts.memory_bytes() + runs_->offsets.memory_bytes();
  return narrow_.size_bytes() + wide_.size_bytes();
}

bool operator==(const OffsetTable& a, const OffsetTable& b) noexcept {
  if (a.size_ != b.size_ || a.has_runs() != b.has_runs()) return false;
  if (a.runs_) {
    return a.runs_ == b.runs_ || (a.runs_->stride == b.runs_->stride && a.runs_->firsts == b.runs_->firsts &&
                                  a.runs_->offsets == b.runs_->offsets);
  }
  if (a.owner_ == b.owner_) return true;
  return a.is_narrow_ == b.is_narrow_ && std::ranges::equal(a.narrow_, b.narrow_) &&
         std::ranges::equal(a.wide_, b.wide_);
}

}  // namespace gapless::layout
