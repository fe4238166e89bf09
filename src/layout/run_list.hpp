// Contiguous runs in packed order, as the builders gather them: what structure is looked for in.
//
// A list of millions of runs takes no more memory than the arrays it was described by: offsets that count from the
// first run's in 4 bytes each where they fit, lengths in 4 bytes where they differ. What was gathered becomes a
// layout's tables without being copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/checked.hpp"
#include "layout/layout.hpp"

namespace gapless::layout::build {

/// Part of a RunList that is not appended to any more.
class Runs {
 public:
  std::size_t size() const noexcept { return size_; }
  Offset offset(std::size_t i) const noexcept { return wide_ != nullptr ? wide_[i].offset : origin_ + offsets_[i]; }
  Offset length(std::size_t i) const noexcept {
    if (lengths_ != nullptr) return lengths_[i];
    return wide_ != nullptr ? wide_[i].length : length_;
  }
  Segment operator[](std::size_t i) const noexcept { return {offset(i), length(i)}; }
  Segment back() const noexcept { return (*this)[size_ - 1]; }

  /// Are all lengths known to be the same?
  bool is_uniform() const noexcept { return wide_ == nullptr && lengths_ == nullptr; }

  Runs from(std::size_t begin) const noexcept {
    Runs part = *this;
    part.size_ -= begin;
    if (wide_ != nullptr) part.wide_ += begin;
    if (offsets_ != nullptr) part.offsets_ += begin;
    if (lengths_ != nullptr) part.lengths_ += begin;
    return part;
  }
  Runs first(std::size_t count) const noexcept {
    Runs part = *this;
    part.size_ = count;
    return part;
  }

 private:
  friend class RunList;
  std::size_t size_ = 0;
  const Segment* wide_ = nullptr;
  const std::int32_t* offsets_ = nullptr;
  const std::int32_t* lengths_ = nullptr;
  Offset origin_ = 0;
  Offset length_ = 0;
};

class RunList {
 public:
  void reserve(std::size_t runs) { offsets_.reserve(runs); }

  /// Appends the run, fused with the last one where it continues that; an empty one is dropped.
  void append(Segment run) {
    if (run.length == 0) return;
    const Offset end = checked::add(run.offset, run.length);
    if (size_ != 0 && end_ == run.offset) {
      last_.length = checked::add(last_.length, run.length);
    } else {
      push(run);
    }
    end_ = end;
  }
  /// Appends the run, though it may continue the last one.
  void push(Segment run) {
    if (size_ != 0) store_last();
    last_ = run;
    ++size_;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  /// Everything gathered. Nothing may be appended afterwards.
  Runs runs();

  /// The offsets, from the first run's on, for a table; in runs of one stride if these take less memory. Leaves
  /// nothing.
  OffsetTable take_offsets(bool compressed);
  /// The packed end of each run. Leaves the offsets.
  OffsetTable take_ends();

 private:
  void store_last();
  void widen();

  std::size_t size_ = 0;  ///< with the last run
  Segment last_{0, 0};    ///< not stored yet: the next one may continue it
  Offset end_ = 0;        ///< where the last run ends
  bool is_complete_ = false;
  Offset origin_ = 0;
  Offset length_ = 0;  ///< of every run, while lengths_ is empty
  std::vector<std::int32_t> offsets_, lengths_;
  std::vector<Segment> wide_;
};

}  // namespace gapless::layout::build
