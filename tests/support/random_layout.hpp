// Random layouts together with what they mean: the list of memory offsets in packed order, kept by plain loops beside
// the construction and sharing no code with it.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "layout/algebra/canonical.hpp"

namespace gapless::tests {

using layout::LayoutPointer;
using layout::Offset;

struct Sample {
  LayoutPointer layout;
  std::vector<Offset> map;  ///< map[k] is where packed byte k lies

  Offset low() const { return map.empty() ? 0 : *std::min_element(map.begin(), map.end()); }
  Offset high() const { return map.empty() ? 0 : *std::max_element(map.begin(), map.end()) + 1; }
};

class RandomLayouts {
 public:
  explicit RandomLayouts(std::uint64_t seed) : random_(seed) {}

  Offset number(Offset low, Offset high) { return std::uniform_int_distribution<Offset>(low, high)(random_); }

  std::uint64_t bits() { return random_(); }

  /// All numbers are multiples of a random power of two, so that every word width gets its turn.
  Sample next(bool overlapping) {
    unit_ = Offset{1} << number(0, 4);
    overlapping_ = overlapping;
    return tree(2);
  }

 private:
  Sample block() {
    const Offset base = number(-8, 8) * unit_, length = number(1, 12) * unit_;
    Sample sample{layout::block(base, length), std::vector<Offset>(static_cast<std::size_t>(length))};
    std::iota(sample.map.begin(), sample.map.end(), base);
    return sample;
  }

  /// A distance at which the sample does not meet itself, or any distance when overlap is wanted.
  Offset distance(const Sample& sample) {
    const Offset span = sample.high() - sample.low();
    const Offset least = overlapping_ ? number(0, 1) * span / unit_ : (span + unit_ - 1) / unit_;
    const Offset distance = (least + number(0, 3)) * unit_;
    return number(0, 3) == 0 ? -distance : distance;
  }

  std::vector<Offset> places(const Sample& sample, Offset count) {
    const Offset step = std::abs(distance(sample));
    std::vector<Offset> offsets(static_cast<std::size_t>(count));
    const bool is_regular = number(0, 2) == 0;
    Offset hole = 0;
    for (Offset i = 0; i < count; ++i) {
      if (!is_regular || number(0, 7) == 0) hole = number(0, 1) * count;
      offsets[i] = (i + hole) * step;  // no two at one place
    }
    if (number(0, 1) == 0) std::shuffle(offsets.begin(), offsets.end(), random_);
    return offsets;
  }

  Sample repeated(Sample sample) {
    for (Offset modes = number(0, 3); modes > 0 && sample.map.size() < 800; --modes) {
      const Offset count = number(2, 5), stride = distance(sample);
      const auto once = sample.map;
      for (Offset i = 1; i < count; ++i) {
        for (const Offset offset : once) sample.map.push_back(offset + i * stride);
      }
      sample.layout = layout::repeat(sample.layout, count, stride);
    }
    return sample;
  }

  Sample indexed(const Sample& child) {
    const auto offsets = places(child, number(2, std::clamp<Offset>(4000 / child.layout->size, 3, 30)));
    Sample sample{layout::index(child.layout, offsets), {}};
    for (const Offset place : offsets) {
      for (const Offset offset : child.map) sample.map.push_back(place + offset);
    }
    return sample;
  }

  Sample ragged() {
    std::vector<layout::Segment> runs;
    Sample sample;
    Offset at = number(-20, 20) * unit_;
    for (Offset count = number(2, 60); count > 0; --count) {
      const Offset length = number(1, 6) * unit_;
      runs.push_back({at, length});
      at += length + number(overlapping_ ? -2 : 1, 5) * unit_;
    }
    if (number(0, 1) == 0) std::shuffle(runs.begin(), runs.end(), random_);
    for (const auto& run : runs) {
      for (Offset i = 0; i < run.length; ++i) sample.map.push_back(run.offset + i);
    }
    sample.layout = layout::segments(runs);
    return sample;
  }

  Sample sum(int depth) {
    std::vector<LayoutPointer> terms;
    Sample sample;
    for (Offset count = number(2, 4); count > 0; --count) {
      const Sample term = tree(depth - 1);
      const Offset shift = overlapping_ || sample.map.empty()
                               ? number(0, 10) * unit_
                               : (sample.high() - term.low() + unit_ - 1) / unit_ * unit_ + number(0, 3) * unit_;
      terms.push_back(layout::shift(term.layout, shift));
      for (const Offset offset : term.map) sample.map.push_back(offset + shift);
    }
    sample.layout = layout::concatenate(terms);
    return sample;
  }

  Sample tree(int depth) {
    switch (depth == 0 ? number(0, 1) : number(0, 4)) {
      case 0:
        return repeated(block());
      case 1:
        return repeated(ragged());
      case 2:
        return repeated(indexed(repeated(block())));
      case 3:
        return repeated(indexed(tree(depth - 1)));
      default:
        return repeated(sum(depth));
    }
  }

  std::mt19937_64 random_;
  Offset unit_ = 1;
  bool overlapping_ = false;
};

/// `count` repetitions, `extent` bytes apart.
inline std::vector<Offset> repeated_map(const std::vector<Offset>& map, Offset count, Offset extent) {
  std::vector<Offset> all;
  for (Offset i = 0; i < count; ++i) {
    for (const Offset offset : map) all.push_back(offset + i * extent);
  }
  return all;
}

}  // namespace gapless::tests
