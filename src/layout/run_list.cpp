#include "layout/run_list.hpp"

#include <limits>

namespace gapless::layout::build {

namespace {

bool is_narrow(Offset value) noexcept {
  using Narrow = std::numeric_limits<std::int32_t>;
  return value >= Narrow::min() && value <= Narrow::max();
}

}  // namespace

void RunList::store_last() {
  if (!wide_.empty()) {
    wide_.push_back(last_);
    return;
  }
  if (offsets_.empty()) {
    origin_ = last_.offset;
    length_ = last_.length;
  }
  Offset distance = 0;
  const bool is_near = !__builtin_sub_overflow(last_.offset, origin_, &distance) && is_narrow(distance);
  const bool is_alike = lengths_.empty() && last_.length == length_;
  if (!is_near || (!is_alike && (!is_narrow(last_.length) || !is_narrow(length_)))) {
    widen();
    wide_.push_back(last_);
    return;
  }
  if (!is_alike) {
    if (lengths_.empty()) {
      lengths_.reserve(offsets_.capacity());
      lengths_.assign(offsets_.size(), static_cast<std::int32_t>(length_));
    }
    lengths_.push_back(static_cast<std::int32_t>(last_.length));
  }
  offsets_.push_back(static_cast<std::int32_t>(distance));
}

void RunList::widen() {
  wide_.reserve(offsets_.capacity());
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    wide_.push_back({origin_ + offsets_[i], lengths_.empty() ? length_ : Offset{lengths_[i]}});
  }
  offsets_ = {};
  lengths_ = {};
}

Runs RunList::runs() {
  if (!is_complete_ && size_ != 0) store_last();
  is_complete_ = true;
  Runs runs;
  runs.size_ = size_;
  runs.origin_ = origin_;
  runs.length_ = length_;
  if (!wide_.empty()) {
    runs.wide_ = wide_.data();
  } else {
    runs.offsets_ = offsets_.data();
    if (!lengths_.empty()) runs.lengths_ = lengths_.data();
  }
  return runs;
}

OffsetTable RunList::take_offsets(bool compressed) {
  if (wide_.empty()) return OffsetTable::taking(std::move(offsets_), compressed);
  std::vector<Offset> offsets;
  offsets.reserve(wide_.size());
  for (const Segment& run : wide_) offsets.push_back(run.offset - wide_[0].offset);
  wide_ = {};
  return compressed ? OffsetTable::compressed(offsets) : OffsetTable(offsets);
}

OffsetTable RunList::take_ends() {
  const Runs all = runs();
  Offset end = 0;
  for (std::size_t i = 0; i < all.size(); ++i) end += all.length(i);
  if (lengths_.empty() || !is_narrow(end)) {
    std::vector<Offset> ends;
    ends.reserve(all.size());
    end = 0;
    for (std::size_t i = 0; i < all.size(); ++i) ends.push_back(end += all.length(i));
    return OffsetTable(ends);
  }
  std::int32_t sum = 0;
  for (std::int32_t& length : lengths_) length = sum += length;
  return OffsetTable::taking(std::move(lengths_), false);
}

}  // namespace gapless::layout::build
