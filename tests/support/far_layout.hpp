// Random layouts of any size and reach, counts and distances beyond 32 bits among them, each with where its packed
// bytes lie: as a function, made of plain divisions beside the construction, for there are too many bytes to list.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "layout/algebra/canonical.hpp"

namespace gapless::tests {

using layout::LayoutPointer;
using layout::Offset;

struct FarSample {
  LayoutPointer layout;
  std::function<Offset(Offset k)> where;  ///< packed byte k lies there
  Offset low, high;                       ///< all bytes lie in [low, high)

  Offset size() const { return layout->size; }
  Offset span() const { return high - low; }
};

/// `count` repetitions, `stride` apart.
inline FarSample repeated(const FarSample& child, Offset count, Offset stride) {
  const Offset size = child.size(), reach = (count - 1) * stride;
  return {layout::repeat(child.layout, count, stride),
          [where = child.where, size, stride](Offset k) { return where(k % size) + k / size * stride; },
          child.low + std::min(reach, Offset{0}), child.high + std::max(reach, Offset{0})};
}

class FarLayouts {
 public:
  explicit FarLayouts(std::uint64_t seed) : random_(seed) {}

  Offset number(Offset low, Offset high) { return std::uniform_int_distribution<Offset>(low, high)(random_); }
  /// From 1 on, of every order of magnitude below 2^bits.
  Offset magnitude(int bits) { return number(1, (Offset{1} << number(1, bits)) - 1); }
  bool one_in(Offset n) { return number(1, n) == 1; }

  /// All numbers are multiples of a random power of two, so that every word width gets its turn.
  FarSample next() {
    unit_ = Offset{1} << number(0, 4);
    return tree(depth_);
  }

  /// Rows of one length and of many gigabytes together.
  FarSample many_rows() {
    unit_ = Offset{1} << number(0, 4);
    const Offset length = magnitude(22) * unit_;
    const FarSample row{layout::block(0, length), [](Offset k) { return k; }, 0, length};
    return repeated(row, (Offset{1} << number(28, 34)) / length + 2, length + number(1, 40) * unit_);
  }

  /// Repetitions of the sample drawn last, as a job has them beside its layout.
  layout::Mode outer(const FarSample& sample) {
    const Offset most = std::max<Offset>(most_bytes / sample.size(), 1);
    return fitting(sample, std::min(one_in(2) ? number(0, 3) : magnitude(34), most));
  }

  /// A stride for repetitions of a sample: mostly clear of itself, else overlapping, zero and far ones.
  Offset stride(const FarSample& sample) {
    const Offset touching = (sample.span() + unit_ - 1) / unit_ * unit_;
    Offset distance = touching + (one_in(3) ? least_gap_ : magnitude(one_in(4) ? 36 : 6)) * unit_;
    if (one_in(12)) distance = number(0, std::min<Offset>(touching / unit_ - 1, 40)) * unit_;
    return one_in(4) ? -distance : distance;
  }

  static constexpr Offset most_bytes = Offset{1} << 44, most_span = Offset{1} << 50;

 private:
  /// As many of `count` repetitions as reach over no more than most_span, any stride apart.
  layout::Mode fitting(const FarSample& sample, Offset count) {
    const Offset apart = stride(sample), each = std::max<Offset>(std::abs(apart), 1);
    return {std::min(count, std::max<Offset>((most_span - sample.span()) / each, 1)), apart};
  }

  /// Some are longer, by that many bits.
  FarSample block(int bits) {
    const Offset base = number(-8, 8) * unit_, length = (one_in(6) ? magnitude(bits) : number(1, 12)) * unit_;
    return {layout::block(base, length), [base](Offset k) { return base + k; }, base, base + length};
  }

  FarSample nested(FarSample sample) {
    for (Offset modes = one_in(8) ? number(4, 13) : number(0, 3); modes > 0; --modes) {
      const Offset most = std::max<Offset>(most_bytes / sample.size(), 1);
      const Offset wanted = std::min(one_in(4) ? magnitude(33) + 1 : number(2, 70), most);
      const layout::Mode mode = fitting(sample, wanted);
      if (mode.count > 1) sample = repeated(sample, mode.count, mode.stride);
    }
    return sample;
  }

  /// Fields of structs, packed one field after the other: as transposes have them, with far columns now and then.
  FarSample planes() {
    const Offset fields = number(2, 70), step = number(1, 2) * unit_;
    const Offset structs = one_in(3) ? magnitude(29) + 1 : number(2, 300);
    const FarSample element{layout::block(0, unit_), [](Offset k) { return k; }, 0, unit_};
    const FarSample field = repeated(element, structs, fields * step + number(0, 3) * unit_);
    return repeated(field, fields, one_in(4) ? -step : step);
  }

  /// Parts one after the other in the packed stream.
  FarSample joined(std::vector<FarSample> parts, LayoutPointer layout) {
    std::vector<Offset> starts;
    Offset start = 0, low = parts[0].low, high = parts[0].high;
    for (const FarSample& part : parts) {
      starts.push_back(start);
      start += part.size();
      low = std::min(low, part.low);
      high = std::max(high, part.high);
    }
    const auto where = [starts, parts = std::move(parts)](Offset k) {
      const auto i = static_cast<std::size_t>(std::ranges::upper_bound(starts, k) - starts.begin()) - 1;
      return parts[i].where(k - starts[i]);
    };
    return {std::move(layout), where, low, high};
  }

  static FarSample shifted(const FarSample& sample, Offset distance) {
    return {layout::shift(sample.layout, distance),
            [where = sample.where, distance](Offset k) { return where(k) + distance; }, sample.low + distance,
            sample.high + distance};
  }

  /// A distance behind all that lies below `high`, mostly.
  Offset distance_of(const FarSample& sample, Offset high) {
    const Offset behind = (high - sample.low + unit_ - 1) / unit_ * unit_;
    if (one_in(20)) return number(-40, 40) * unit_;
    return behind + (one_in(5) ? magnitude(38) : number(0, 5)) * unit_;
  }

  FarSample indexed(const FarSample& child) {
    std::vector<Offset> offsets;
    Offset high = 0;
    const Offset room = std::min(most_bytes / child.size(), most_span / child.span());
    const Offset most = std::clamp<Offset>(room, 2, one_in(6) ? 3000 : 40);
    for (Offset i = number(2, most); i > 0; --i) {
      offsets.push_back(distance_of(child, high));
      high = std::max(high, offsets.back() + child.high);
    }
    if (one_in(2)) std::shuffle(offsets.begin(), offsets.end(), random_);
    std::vector<FarSample> parts;
    for (const Offset offset : offsets) parts.push_back(shifted(child, offset));
    return joined(std::move(parts), layout::index(child.layout, offsets));
  }

  FarSample ragged() {
    std::vector<FarSample> parts;
    std::vector<layout::Segment> runs;
    Offset high = number(-20, 20) * unit_;
    for (Offset i = number(2, one_in(6) ? 3000 : 60); i > 0; --i) {
      const Offset length = (one_in(40) ? magnitude(12) : number(1, 9)) * unit_;
      const FarSample run{layout::block(0, length), [](Offset k) { return k; }, 0, length};
      parts.push_back(shifted(run, distance_of(run, high)));
      runs.push_back({parts.back().low, length});
      high = std::max(high, parts.back().high);
    }
    return joined(std::move(parts), layout::segments(runs));
  }

  FarSample sum(int depth) {
    std::vector<FarSample> parts;
    std::vector<LayoutPointer> terms;
    Offset high = 0;
    for (Offset i = number(2, 4); i > 0; --i) {
      const FarSample term = tree(depth - 1);
      parts.push_back(shifted(term, distance_of(term, high)));
      terms.push_back(parts.back().layout);
      high = std::max(high, parts.back().high);
    }
    return joined(std::move(parts), layout::concatenate(terms));
  }

  FarSample tree(int depth) {
    const Offset kind = depth == 0 ? number(0, 4) : number(0, 7);
    // Descriptions of lists grow with the bytes of their runs.
    const bool may_be_long = depth == depth_ && kind < 2;
    least_gap_ = may_be_long ? 0 : 1;
    switch (kind) {
      case 0:
      case 1:
        return nested(block(may_be_long ? 32 : 10));
      case 2:
        return nested(ragged());
      case 3:
      case 4:
        return nested(planes());
      case 5:
        return nested(indexed(nested(block(10))));
      case 6:
        return nested(indexed(tree(depth - 1)));
      default:
        return nested(sum(depth));
    }
  }

  static constexpr int depth_ = 2;

  std::mt19937_64 random_;
  Offset unit_ = 1;
  Offset least_gap_ = 0;  ///< between repetitions that are clear of each other
};

}  // namespace gapless::tests
