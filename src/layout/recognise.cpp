// Finding the structure of a list of runs, so that equal functions get equal layouts however they were described.
//
// The list is fully fused, so it is unique to the function, and everything here is a deterministic function of the
// list:
//   1. one nest of modes around a block, found exactly;
//   2. the smallest period of the function: one mode over a smaller list (the fields of a repeated struct);
//   3. the cheapest of: the runs as a list, groups of runs that are translates of each other at listed offsets,
//      blocks of one length of which some touch, a few long strided parts.
#include <algorithm>
#include <numeric>
#include <optional>

#include "layout/build.hpp"

namespace gapless::layout::build {

namespace {

using List = std::span<const Segment>;

struct StridedPrefix {
  std::vector<Mode> modes;
  std::size_t blocks = 1;
  std::size_t runs = 1;  ///< whole runs of the list that the blocks fill; 0 if they end inside one
};

/// The longest nest of modes around blocks as long as the first run; every block a run.
StridedPrefix prefix_of_runs(List list) {
  StridedPrefix prefix;
  prefix.blocks = leading_modes([&](std::size_t j) { return j < list.size() && list[j].length == list[0].length; },
                                [&](std::size_t j) { return list[j].offset; }, prefix.modes);
  prefix.runs = prefix.blocks;
  return prefix;
}

/// The same where blocks may touch: if a group of blocks ends where the next one begins, the list shows one run of
/// double length, never triple, because blocks inside a mode have gaps between them.
StridedPrefix prefix_of_halves(List list) {
  const Offset length = list[0].length;
  std::vector<Offset> blocks;
  std::size_t next = 0;
  const auto exists = [&](std::size_t j) {
    while (blocks.size() <= j && next < list.size()) {
      const Segment run = list[next];
      const bool is_double = run.length / 2 == length && run.length % 2 == 0;
      if (run.length != length && !is_double) return false;
      blocks.push_back(run.offset);
      if (is_double) blocks.push_back(run.offset + length);
      ++next;
    }
    return j < blocks.size();
  };
  exists(0);
  StridedPrefix prefix;
  prefix.blocks = leading_modes(
      exists, [&](std::size_t j) { return blocks[j]; }, prefix.modes);
  Offset left = static_cast<Offset>(prefix.blocks) * length;
  for (prefix.runs = 0; left > 0; ++prefix.runs) left -= list[prefix.runs].length;
  if (left < 0) prefix.runs = 0;
  return prefix;
}

StridedPrefix strided_prefix(List list) {
  if (StridedPrefix prefix = prefix_of_halves(list); prefix.runs != 0) return prefix;
  return prefix_of_runs(list);
}

/// The modes of a list that is one nest of them.
std::optional<std::vector<Mode>> whole_nest(List list) {
  const Offset length = list[0].length;
  const auto [shortest, longest] = std::ranges::minmax(list, {}, &Segment::length);
  if (shortest.length != length || longest.length / 2 > length) return std::nullopt;
  StridedPrefix prefix = longest.length == length ? prefix_of_runs(list) : prefix_of_halves(list);
  if (prefix.runs != list.size()) return std::nullopt;
  return std::move(prefix.modes);
}

Layout strided(Segment first, std::span<const Mode> modes) {
  Layout layout = make_block(first.offset, first.length);
  for (const Mode& mode : modes) repeat_in_place(layout, mode.count, mode.stride);
  return layout;
}

struct Period {
  std::size_t repetitions = 1;
  std::size_t runs = 0;    ///< runs of the list that one period begins
  bool is_joined = false;  ///< a period's last run is fused with the next period's first
};

/// The most repetitions of one smaller function that the list consists of. The list is the sequence length, gap,
/// length, gap … length; it repeats either run by run, or, where each repetition's end touches the next one's
/// beginning, from gap to gap, the first and last run being the two halves of the joined ones.
Period find_period(List list) {
  const std::size_t count = list.size();
  const auto length = [&](std::size_t i) { return list[i].length; };
  const auto gap = [&](std::size_t i) { return list[i + 1].offset - (list[i].offset + list[i].length); };
  Period best;
  const std::size_t separate = smallest_period(
      count, [&](std::size_t i, std::size_t j) { return length(i) == length(j) && gap(i) == gap(j); },
      [&](std::size_t i) { return length(i) == length(count - 1); });
  if (separate != 0) best = {count / separate, separate, false};
  const std::size_t joined = smallest_period(
      count - 1, [&](std::size_t i, std::size_t j) { return gap(i) == gap(j) && length(i + 1) == length(j + 1); },
      [&](std::size_t i) { return gap(i) == gap(count - 2); });
  if (joined != 0 && length(joined) == length(0) + length(count - 1) && (count - 1) / joined > best.repetitions) {
    best = {(count - 1) / joined, joined, true};
  }
  return best;
}

std::vector<Offset> relative_offsets(List list, std::size_t group) {
  std::vector<Offset> offsets;
  offsets.reserve(list.size() / group);
  for (std::size_t i = 0; i < list.size(); i += group) offsets.push_back(list[i].offset - list[0].offset);
  return offsets;
}

Layout as_segments(List list) {
  Layout layout;
  layout.core = Core::segments;
  layout.base = list[0].offset;
  layout.offsets = OffsetTable(relative_offsets(list, 1));
  std::vector<Offset> ends;
  ends.reserve(list.size());
  for (const Segment& run : list) ends.push_back(layout.size += run.length);
  layout.core_size = layout.size;
  layout.ends = OffsetTable(ends);
  return layout;
}

Layout as_index(List list, std::size_t group, Layout child) {
  Layout layout;
  layout.core = Core::index;
  layout.base = child.base;
  child.base = 0;
  layout.offsets = OffsetTable::compressed(relative_offsets(list, group));
  layout.size = layout.core_size = child.size * static_cast<Offset>(list.size() / group);
  layout.child = std::make_shared<const Layout>(std::move(child));
  return layout;
}

/// A few parts are worth their memory at any length, because engines run them as loops; many are only if they are long.
constexpr std::size_t weight_of_parts(std::size_t count) { return count <= 16 ? 8 * count : 64 * count; }

/// What a layout's description weighs, in list entries of 4 bytes.
std::size_t weight(const Layout& layout) {
  std::size_t sum = 1 + layout.modes.size() + layout.offsets.size() + layout.ends.size();
  if (layout.child) sum += weight(*layout.child);
  return sum + weight_of_parts(layout.parts.size());
}

/// Shorter lists stay runs: they may be the fields of a record, which engines move one by one.
constexpr std::size_t shortest_block_list = 64;

std::vector<std::size_t> proper_divisors(std::size_t number) {
  std::vector<std::size_t> divisors;
  for (std::size_t i = 1; i <= number / i; ++i) {
    if (number % i != 0) continue;
    divisors.push_back(i);
    if (i != number / i && i != 1) divisors.push_back(number / i);
  }
  std::ranges::sort(divisors);
  return divisors;
}

class Recogniser {
 public:
  explicit Recogniser(std::size_t runs) : steps_(64 * runs + 4096) {}

  Layout recognise(List list) {
    if (list.size() == 1) return make_block(list[0].offset, list[0].length);
    steps_ -= std::min(steps_, list.size());
    if (const std::optional<std::vector<Mode>> modes = whole_nest(list)) return strided(list[0], *modes);
    if (const Period period = find_period(list); period.repetitions > 1) return repeated(list, period);
    return irregular(list);
  }

 private:
  Layout repeated(List list, const Period& period) {
    std::vector<Segment> one(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(period.runs));
    Offset stride = list[period.runs].offset - list[0].offset;
    if (period.is_joined) {
      one.push_back({list[period.runs].offset, list.back().length});
      stride += list.back().length;
    }
    // With steps of its own, so that the form is that of the smaller list alone.
    Layout layout = build::recognise(one);
    repeat_in_place(layout, static_cast<Offset>(period.repetitions), stride);
    return layout;
  }

  Layout irregular(List list) {
    std::optional<Layout> best;
    std::size_t best_weight = 2 * list.size() + 1;
    for (const std::size_t group : proper_divisors(list.size())) {
      if (!are_translates(list, group)) continue;
      Layout candidate = as_index(list, group, recognise(list.first(group)));
      if (const std::size_t candidate_weight = weight(candidate); candidate_weight < best_weight) {
        best = std::move(candidate);
        best_weight = candidate_weight;
      }
    }
    if (list.size() >= shortest_block_list) {
      if (std::optional<Layout> blocks = as_blocks(list, best_weight)) {
        best_weight = weight(*blocks);
        best = std::move(blocks);
      }
    }
    if (std::optional<Layout> sum = as_parts(list, best_weight)) return *std::move(sum);
    return best ? *std::move(best) : as_segments(list);
  }

  /// Is every `group` runs of the list a copy of the first `group`, moved? Says no when out of steps.
  bool are_translates(List list, std::size_t group) {
    for (std::size_t i = group; i < list.size(); ++i) {
      if (steps_ == 0) return false;
      --steps_;
      if (list[i].length != list[i - group].length) return false;
      const bool begins_group = i % group == 0;
      if (!begins_group && list[i].offset - list[i - 1].offset != list[i - group].offset - list[i - group - 1].offset) {
        return false;
      }
    }
    return true;
  }

  /// The list as blocks of one length where some of them touch, if these weigh less than `limit`: engines move blocks
  /// of one length much faster than runs of many lengths.
  static std::optional<Layout> as_blocks(List list, std::size_t limit) {
    Offset length = 0, size = 0;
    for (const Segment& run : list) {
      length = std::gcd(length, run.length);
      size = checked::add(size, run.length);
    }
    const auto count = static_cast<std::size_t>(size / length);
    if (count >= limit) return std::nullopt;
    std::vector<Segment> blocks;
    blocks.reserve(count);
    for (const Segment& run : list) {
      for (Offset done = 0; done < run.length; done += length) blocks.push_back({run.offset + done, length});
    }
    Layout layout = as_index(blocks, 1, make_block(list[0].offset, length));
    return weight(layout) < limit ? std::optional(std::move(layout)) : std::nullopt;
  }

  /// The list as strided parts, if these are few and long enough to weigh less than `limit`.
  static std::optional<Layout> as_parts(List list, std::size_t limit) {
    Layout sum;
    sum.core = Core::sum;
    sum.base = list[0].offset;
    std::vector<std::pair<Segment, std::vector<Mode>>> found;
    for (std::size_t i = 0; i < list.size();) {
      StridedPrefix prefix = strided_prefix(list.subspan(i));
      found.emplace_back(list[i], std::move(prefix.modes));
      i += prefix.runs;
      if (weight_of_parts(found.size()) >= limit) return std::nullopt;
    }
    for (const auto& [first, modes] : found) {
      Layout part = strided({first.offset - sum.base, first.length}, modes);
      const Offset start = sum.size;
      sum.size += part.size;
      sum.parts.push_back({start, std::make_shared<const Layout>(std::move(part))});
    }
    sum.core_size = sum.size;
    return sum;
  }

  std::size_t steps_;
};

}  // namespace

Layout recognise(std::span<const Segment> list) { return Recogniser(list.size()).recognise(list); }

}  // namespace gapless::layout::build
