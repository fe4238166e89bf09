// Lists of offsets, stored so that the plan of an N-entry indexed type stays within twice the user's own list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gapless::layout {

/// A distance in memory or in the packed stream, in bytes. Signed: MPI displacements and strides may be negative.
using Offset = std::int64_t;

/// `count` neighbouring entries of a table, `stride` apart, from entry `first` on, which is `offset`.
struct OffsetRun {
  Offset first;
  Offset offset;
  Offset count;
  Offset stride;
};

/// A read-only list of offsets: 4 bytes an entry where every value fits and 8 otherwise, or, where most entries lie one
/// stride behind the entry before, runs of them. Copies share the entries, so that shifting or repeating a layout costs
/// the same whatever the length of its lists.
class OffsetTable {
 public:
  OffsetTable() = default;
  /// Every entry by itself.
  explicit OffsetTable(std::span<const Offset> values);
  /// In runs if that takes less than half of the memory.
  static OffsetTable compressed(std::span<const Offset> values);
  /// Takes over the list without a copy, every entry by itself unless `compressed`.
  static OffsetTable taking(std::vector<std::int32_t>&& values, bool compressed);
  /// Precondition: the runs follow each other, from entry 0 on, and have one stride.
  static OffsetTable of_runs(std::span<const OffsetRun> runs);

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size() == 0; }
  /// O(1), or O(log runs).
  Offset operator[](std::size_t i) const noexcept {
    if (runs_) [[unlikely]]
      return entry_of_runs(static_cast<Offset>(i));
    return is_narrow_ ? Offset{narrow_[i]} : wide_[i];
  }

  bool has_runs() const noexcept { return runs_ != nullptr; }
  /// Without runs every entry is one.
  std::size_t run_count() const noexcept;
  OffsetRun run(std::size_t i) const noexcept;
  /// The run that holds an entry.
  std::size_t run_of(Offset entry) const noexcept;

  /// Of tables without runs: the entries themselves.
  bool is_narrow() const noexcept { return is_narrow_; }
  std::span<const std::int32_t> narrow() const noexcept { return narrow_; }
  std::span<const std::int64_t> wide() const noexcept { return wide_; }
  /// Calls `use` with the entries as they are stored, narrow or wide. Of tables without runs.
  template <class Use>
  decltype(auto) with_entries(Use&& use) const {
    return is_narrow_ ? use(narrow_) : use(wide_);
  }
  /// Of tables with runs: the entry that each run begins with and, at the end, size(); and each run's first offset.
  const OffsetTable& run_firsts() const noexcept;
  const OffsetTable& run_offsets() const noexcept;
  /// A table of the same offsets, with every entry by itself.
  OffsetTable expanded() const;

  std::size_t memory_bytes() const noexcept;

  /// Tables of the same offsets that are stored in different ways may differ.
  friend bool operator==(const OffsetTable& a, const OffsetTable& b) noexcept;

 private:
  struct Runs;
  Offset entry_of_runs(Offset i) const noexcept;

  std::size_t size_ = 0;
  bool is_narrow_ = true;
  std::span<const std::int32_t> narrow_;
  std::span<const std::int64_t> wide_;
  std::shared_ptr<const void> owner_;  ///< keeps the entries alive
  std::shared_ptr<const Runs> runs_;
};

}  // namespace gapless::layout
