// Random layouts made by algebra alone, as types beyond the recognition budget are: modes over lists over sums over
// modes, nested in ways that recognition would flatten. Each with the bytes it names.
#pragma once

#include <random>
#include <vector>

#include "layout/algebra/build.hpp"
#include "layout/algebra/canonical.hpp"

namespace gapless::testing {

struct RandomLayout {
  layout::LayoutPointer layout;
  std::vector<std::int64_t> bytes;
};

class LayoutGenerator {
 public:
  explicit LayoutGenerator(std::uint64_t seed) : random_(seed) {}

  RandomLayout draw(int depth) {
    if (depth == 0) return leaf();
    switch (between(0, 2)) {
      case 0:
        return nest(depth);
      case 1:
        return list(depth);
      default:
        return sum(depth);
    }
  }

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

 private:
  static layout::LayoutPointer share(layout::Layout&& layout) {
    return std::make_shared<const layout::Layout>(std::move(layout));
  }

  static void append(std::vector<std::int64_t>& bytes, const std::vector<std::int64_t>& more, std::int64_t distance) {
    for (const std::int64_t byte : more) bytes.push_back(byte + distance);
  }

  RandomLayout leaf() {
    std::vector<layout::Segment> runs;
    RandomLayout result;
    std::int64_t next = between(-20, 20);
    for (std::int64_t i = between(1, 3); i > 0; --i) {
      runs.push_back({next, between(1, 9)});
      for (std::int64_t j = 0; j < runs.back().length; ++j) result.bytes.push_back(next + j);
      next += between(0, 3) == 0 ? between(-30, 30) : runs.back().length + between(0, 8);
    }
    result.layout = layout::segments(runs);
    return result;
  }

  RandomLayout nest(int depth) {
    const RandomLayout child = draw(depth - 1);
    const std::int64_t count = between(1, 3), stride = between(-40, 120);
    layout::Layout nested = *child.layout;
    layout::build::repeat_in_place(nested, count, stride);
    RandomLayout result{share(std::move(nested)), {}};
    for (std::int64_t i = 0; i < count; ++i) append(result.bytes, child.bytes, i * stride);
    return result;
  }

  RandomLayout list(int depth) {
    const RandomLayout child = draw(depth - 1);
    std::vector<std::int64_t> offsets;
    RandomLayout result;
    const std::int64_t step = between(0, 60);
    // Most entries of some lists lie one step behind the entry before.
    const bool is_regular = child.bytes.size() < 16 && between(0, 2) == 0;
    for (std::int64_t i = between(2, is_regular ? 24 : 6); i > 0; --i) {
      const bool is_run = is_regular && !offsets.empty() && between(0, 7) != 0;
      offsets.push_back(is_run ? offsets.back() + step : between(0, 1) == 0 ? between(-90, 90) : i * step);
      append(result.bytes, child.bytes, offsets.back());
    }
    // Lists of single runs are never left to algebra, which would miss that runs touch.
    result.layout = child.layout->is_contiguous() ? layout::index(child.layout, offsets)
                                                  : share(layout::build::index_of(*child.layout, offsets));
    return result;
  }

  RandomLayout sum(int depth) {
    std::vector<layout::LayoutPointer> terms;
    RandomLayout result;
    for (std::int64_t i = between(1, 4); i > 0; --i) {
      const RandomLayout term = draw(static_cast<int>(between(0, depth - 1)));
      const std::int64_t distance = between(-100, 100);
      terms.push_back(layout::shift(term.layout, distance));
      append(result.bytes, term.bytes, distance);
    }
    result.layout = share(layout::build::sum_of(terms));
    return result;
  }

  std::mt19937_64 random_;
};

}  // namespace gapless::testing
