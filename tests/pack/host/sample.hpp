// Layouts with their type maps: each sample carries the memory offset of every packed byte, written down by plain loops
// that share no code with the layouts or the engine.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "../../support/seed.hpp"
#include "layout/algebra/canonical.hpp"

namespace gapless::pack::testing {

using layout::LayoutPointer;
using layout::Mode;
using layout::Offset;
using tests::random_seed;
using Random = std::mt19937_64;

inline Offset pick(Random& random, Offset low, Offset high) {
  return std::uniform_int_distribution<Offset>(low, high)(random);
}

struct Sample {
  LayoutPointer layout;
  std::vector<Offset> map;  ///< map[k] is where packed byte k lies
};

inline Sample block(Offset base, Offset length) {
  Sample sample{layout::block(base, length), {}};
  for (Offset k = 0; k < length; ++k) sample.map.push_back(base + k);
  return sample;
}

inline Sample repeat(const Sample& child, Offset count, Offset stride) {
  Sample sample{layout::repeat(child.layout, count, stride), {}};
  for (Offset i = 0; i < count; ++i) {
    for (const Offset offset : child.map) sample.map.push_back(offset + i * stride);
  }
  return sample;
}

inline Sample index(const Sample& child, const std::vector<Offset>& offsets) {
  Sample sample{layout::index(child.layout, offsets), {}};
  for (const Offset start : offsets) {
    for (const Offset offset : child.map) sample.map.push_back(offset + start);
  }
  return sample;
}

inline Sample segments(const std::vector<layout::Segment>& runs) {
  Sample sample{layout::segments(runs), {}};
  for (const layout::Segment& run : runs) {
    for (Offset k = 0; k < run.length; ++k) sample.map.push_back(run.offset + k);
  }
  return sample;
}

inline Sample concatenate(const std::vector<Sample>& terms) {
  std::vector<LayoutPointer> layouts;
  Sample sample;
  for (const Sample& term : terms) {
    layouts.push_back(term.layout);
    sample.map.insert(sample.map.end(), term.map.begin(), term.map.end());
  }
  sample.layout = layout::concatenate(layouts);
  return sample;
}

inline Offset reach(const Sample& sample) {
  if (sample.map.empty()) return 1;
  const auto [low, high] = std::minmax_element(sample.map.begin(), sample.map.end());
  return *high - *low + 1;
}

/// The lengths that each have a copy of their own, and those around the borders between copies.
inline Offset random_length(Random& random) {
  static const Offset lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 96, 97, 100};
  if (pick(random, 0, 15) == 0) return pick(random, 101, 300);
  return lengths[pick(random, 0, std::size(lengths) - 1)];
}

inline Offset random_stride(Random& random, Offset span) {
  switch (pick(random, 0, 9)) {
    case 0:
      return pick(random, -span, span);  // overlapping, zero included
    case 1:
    case 2:
      return -(span + pick(random, 0, 16));
    case 3:
      return span;
    default:
      return span + pick(random, 0, 40);
  }
}

/// At most about `budget` packed bytes.
inline Sample random_sample(Random& random, int depth, Offset budget) {
  if (depth == 0 || budget < 8) return block(pick(random, -32, 32), std::min(random_length(random), budget));
  switch (pick(random, 0, 4)) {
    case 0:
    case 1: {
      const Sample child = random_sample(random, depth - 1, budget / 3);
      const Offset most = std::max<Offset>(1, budget / std::max<Offset>(1, child.map.size()));
      return repeat(child, pick(random, 1, std::min<Offset>(most, 300)), random_stride(random, reach(child)));
    }
    case 2: {
      const Sample child = random_sample(random, depth - 1, budget / 4);
      const Offset most = std::max<Offset>(1, budget / std::max<Offset>(1, child.map.size()));
      std::vector<Offset> offsets;
      // Most entries of some lists lie one step behind the entry before.
      const bool is_regular = pick(random, 0, 2) == 0;
      const Offset step = random_stride(random, reach(child));
      Offset at = pick(random, -100, 100);
      for (Offset i = pick(random, 1, std::min<Offset>(most, 60)); i > 0; --i) {
        offsets.push_back(at);
        at += is_regular && pick(random, 0, 7) != 0 ? step : random_stride(random, reach(child));
      }
      return index(child, offsets);
    }
    case 3: {
      std::vector<layout::Segment> runs;
      Offset at = pick(random, -100, 100), bytes = 0;
      for (Offset i = pick(random, 1, 50); i > 0 && bytes < budget; --i) {
        const Offset length = std::min(random_length(random), budget);
        runs.push_back({at, length});
        bytes += length;
        at += pick(random, 0, 5) == 0 ? pick(random, -200, 200) : length + pick(random, 0, 30);
      }
      return segments(runs);
    }
    default: {
      std::vector<Sample> terms;
      for (Offset i = pick(random, 1, 4); i > 0; --i) {
        Sample term = random_sample(random, depth - 1, budget / 4);
        const Offset distance = pick(random, 0, 2) == 0 ? pick(random, -300, 300) : 0;
        term.layout = layout::shift(term.layout, distance);
        for (Offset& offset : term.map) offset += distance;
        terms.push_back(term);
      }
      return concatenate(terms);
    }
  }
}

inline bool is_injective(const Sample& sample, Mode outer) {
  std::vector<Offset> all;
  for (Offset r = 0; r < outer.count; ++r) {
    for (const Offset offset : sample.map) all.push_back(offset + r * outer.stride);
  }
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) == all.end();
}

}  // namespace gapless::pack::testing
