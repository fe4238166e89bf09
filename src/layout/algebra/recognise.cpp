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

#include "layout/algebra/build.hpp"

namespace gapless::layout::build {

namespace {

using List = Runs;

/// How much of a list a nest of modes covers.
struct StridedPrefix {
  std::size_t blocks = 1;
  std::size_t runs = 1;  ///< whole runs of the list that the blocks fill; 0 if they end inside one
};

/// Memory that is used again from one search for a nest to the next.
struct Room {
  std::vector<Mode> modes;  ///< of the nest found
  std::vector<Offset> blocks;
};

/// The longest nest of modes around blocks as long as the first run; every block a run.
StridedPrefix prefix_of_runs(const List& list, Room& room) {
  room.modes.clear();
  StridedPrefix prefix;
  prefix.blocks = leading_modes([&](std::size_t j) { return j < list.size() && list.length(j) == list.length(0); },
                                [&](std::size_t j) { return list.offset(j); }, room.modes);
  prefix.runs = prefix.blocks;
  return prefix;
}

/// The same where blocks may touch. If a group of blocks ends where the next one begins, the list has one run of double
/// length in their place. It has none of triple length, because blocks inside a mode have gaps between them.
StridedPrefix prefix_of_halves(const List& list, Room& room) {
  const Offset length = list.length(0);
  std::vector<Offset>& blocks = room.blocks;
  blocks.clear();
  room.modes.clear();
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
      exists, [&](std::size_t j) { return blocks[j]; }, room.modes);
  Offset left = static_cast<Offset>(prefix.blocks) * length;
  for (prefix.runs = 0; left > 0; ++prefix.runs) left -= list.length(prefix.runs);
  if (left < 0) prefix.runs = 0;
  return prefix;
}

StridedPrefix strided_prefix(const List& list, Room& room) {
  if (const StridedPrefix prefix = prefix_of_halves(list, room); prefix.runs != 0) return prefix;
  return prefix_of_runs(list, room);
}

struct Lengths {
  Offset shortest, longest;
};

Lengths lengths_of(const List& list) {
  Lengths lengths{list.length(0), list.length(0)};
  if (list.is_uniform()) return lengths;
  for (std::size_t i = 1; i < list.size(); ++i) {
    lengths.shortest = std::min(lengths.shortest, list.length(i));
    lengths.longest = std::max(lengths.longest, list.length(i));
  }
  return lengths;
}

/// The modes of the nest that the whole list is; none if it is no single nest.
std::optional<std::vector<Mode>> whole_nest(const List& list, const Lengths& lengths) {
  const Offset length = list.length(0);
  if (lengths.shortest != length || lengths.longest / 2 > length) return std::nullopt;
  Room room;
  const StridedPrefix prefix = lengths.longest == length ? prefix_of_runs(list, room) : prefix_of_halves(list, room);
  if (prefix.runs != list.size()) return std::nullopt;
  return std::move(room.modes);
}

Layout strided(Segment first, std::span<const Mode> modes) {
  Layout layout = make_block(first.offset, first.length);
  for (const Mode& mode : modes) repeat_in_place(layout, mode.count, mode.stride);
  return layout;
}

struct Period {
  std::size_t repetitions = 1;
  std::size_t runs = 0;    ///< runs from the beginning of one period to that of the next
  bool is_joined = false;  ///< a period's last run is fused with the next period's first
};

/// The smallest function that makes the list when repeated. The list is the sequence length, gap, length, gap … length.
/// It repeats run by run; or, where each repetition ends at the beginning of the next, from gap to gap: then the last
/// run of one repetition and the first of the next are joined to one run, of which the list's last and first run are
/// the two parts.
Period find_period(const List& list) {
  const std::size_t count = list.size();
  const auto length = [&](std::size_t i) { return list.length(i); };
  const auto gap = [&](std::size_t i) { return list.offset(i + 1) - (list.offset(i) + list.length(i)); };
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

std::vector<Offset> relative_offsets(const List& list, std::size_t group) {
  std::vector<Offset> offsets;
  offsets.reserve(list.size() / group);
  for (std::size_t i = 0; i < list.size(); i += group) offsets.push_back(list.offset(i) - list.offset(0));
  return offsets;
}

Layout as_segments(Offset base, OffsetTable offsets, OffsetTable ends) {
  Layout layout;
  layout.core = Core::segments;
  layout.base = base;
  layout.size = layout.core_size = ends[ends.size() - 1];
  layout.offsets = std::move(offsets);
  layout.ends = std::move(ends);
  return layout;
}

Layout as_segments(const List& list) {
  std::vector<Offset> ends;
  ends.reserve(list.size());
  Offset size = 0;
  for (std::size_t i = 0; i < list.size(); ++i) ends.push_back(size += list.length(i));
  return as_segments(list.offset(0), OffsetTable(relative_offsets(list, 1)), OffsetTable(ends));
}

Layout as_index(OffsetTable offsets, Layout child) {
  Layout layout;
  layout.core = Core::index;
  layout.base = child.base;
  child.base = 0;
  layout.size = layout.core_size = child.size * static_cast<Offset>(offsets.size());
  layout.offsets = std::move(offsets);
  layout.child = std::make_shared<const Layout>(std::move(child));
  return layout;
}

Layout as_index(const List& list, std::size_t group, Layout child) {
  return as_index(OffsetTable::compressed(relative_offsets(list, group)), std::move(child));
}

/// Engines run parts as loops, so a few parts are worth their memory at any length, and many only if they are long.
constexpr std::size_t weight_of_parts(std::size_t count) { return count <= 16 ? 8 * count : 64 * count; }

/// What a layout's description weighs, in list entries of 4 bytes.
std::size_t weight(const Layout& layout) {
  std::size_t sum = 1 + layout.modes.size() + layout.offsets.size() + layout.ends.size();
  if (layout.child) sum += weight(*layout.child);
  return sum + weight_of_parts(layout.parts.size());
}

/// What a list of so many blocks of one length weighs.
constexpr std::size_t weight_of_blocks(std::size_t count) { return count + 2; }

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
  explicit Recogniser(RunList& whole)
      : whole_(whole), steps_(4096 + 8 * whole.size() + 64 * std::min(whole.size(), listed_closely)) {}

  Layout recognise(const List& list) {
    if (list.size() == 1) return make_block(list.offset(0), list.length(0));
    steps_ -= std::min(steps_, list.size());
    const Lengths lengths = lengths_of(list);
    if (const std::optional<std::vector<Mode>> modes = whole_nest(list, lengths)) return strided(list[0], *modes);
    if (const Period period = find_period(list); period.repetitions > 1) return repeated(list, period);
    return irregular(list, lengths);
  }

 private:
  /// Longer lists are given fewer steps a run.
  static constexpr std::size_t listed_closely = std::size_t{1} << 14;

  static Layout repeated(const List& list, const Period& period) {
    RunList one;
    for (std::size_t i = 0; i < period.runs; ++i) one.append(list[i]);
    Offset stride = list.offset(period.runs) - list.offset(0);
    if (period.is_joined) {
      one.append({list.offset(period.runs), list.back().length});
      stride += list.back().length;
    }
    // With a budget of its own, so that the form of a period does not depend on how often it is repeated.
    Layout layout = build::recognise(std::move(one));
    repeat_in_place(layout, static_cast<Offset>(period.repetitions), stride);
    return layout;
  }

  Layout irregular(const List& list, const Lengths& lengths) {
    std::optional<Layout> best;
    std::size_t best_weight = 2 * list.size() + 1;
    const bool is_uniform = lengths.shortest == lengths.longest;
    if (is_uniform) best_weight = std::min(best_weight, weight_of_blocks(list.size()));
    for (const std::size_t group : proper_divisors(list.size())) {
      if (group == 1 || !are_translates(list, group)) continue;
      Layout candidate = as_index(list, group, recognise(list.first(group)));
      if (const std::size_t candidate_weight = weight(candidate); candidate_weight < best_weight) {
        best = std::move(candidate);
        best_weight = candidate_weight;
      }
    }
    if (list.size() >= shortest_block_list && !is_uniform) {
      if (std::optional<Layout> blocks = as_blocks(list, lengths, best_weight)) {
        best_weight = weight(*blocks);
        best = std::move(blocks);
      }
    }
    if (std::optional<Layout> sum = as_parts(list, best_weight)) return *std::move(sum);
    if (best) return *std::move(best);
    return is_uniform ? as_runs_of_one_length(list) : as_runs(list);
  }

  bool is_whole(const List& list) const { return list.size() == whole_.size(); }

  Layout as_runs_of_one_length(const List& list) {
    Layout block = make_block(list.offset(0), list.length(0));
    return is_whole(list) ? as_index(whole_.take_offsets(true), std::move(block)) : as_index(list, 1, std::move(block));
  }

  Layout as_runs(const List& list) {
    if (!is_whole(list)) return as_segments(list);
    const Offset base = list.offset(0);
    OffsetTable ends = whole_.take_ends();
    return as_segments(base, whole_.take_offsets(false), std::move(ends));
  }

  /// Is every `group` runs of the list a copy of the first `group`, moved? Says no when out of steps.
  bool are_translates(const List& list, std::size_t group) {
    for (std::size_t i = group; i < list.size(); ++i) {
      if (steps_ == 0) return false;
      --steps_;
      if (list.length(i) != list.length(i - group)) return false;
      const bool begins_group = i % group == 0;
      if (!begins_group && list.offset(i) - list.offset(i - 1) != list.offset(i - group) - list.offset(i - group - 1)) {
        return false;
      }
    }
    return true;
  }

  /// The list as blocks of one length where some of them touch, if these weigh less than `limit`: engines move blocks
  /// of one length much faster than runs of many lengths.
  static std::optional<Layout> as_blocks(const List& list, const Lengths& lengths, std::size_t limit) {
    Offset size = 0;
    for (std::size_t i = 0; i < list.size(); ++i) size = checked::add(size, list.length(i));
    const auto blocks_of = [size](Offset length) { return static_cast<std::size_t>(size / length); };
    Offset length = lengths.shortest;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (weight_of_blocks(blocks_of(length)) >= limit) return std::nullopt;
      while (i < list.size() && list.length(i) % length == 0) ++i;
      if (i < list.size()) length = std::gcd(length, list.length(i));
    }
    if (weight_of_blocks(blocks_of(length)) >= limit) return std::nullopt;
    RunList blocks;
    blocks.reserve(blocks_of(length));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Segment run = list[i];
      for (Offset done = 0; done < run.length; done += length) blocks.push({run.offset + done, length});
    }
    static_cast<void>(blocks.runs());
    return as_index(blocks.take_offsets(true), make_block(list.offset(0), length));
  }

  /// The list as strided parts, if these are few and long enough to weigh less than `limit`.
  static std::optional<Layout> as_parts(const List& list, std::size_t limit) {
    // Most long lists have too many parts, so parts are counted before any is made.
    Room room;
    std::size_t parts = 0;
    for (std::size_t i = 0; i < list.size(); i += strided_prefix(list.from(i), room).runs) {
      if (weight_of_parts(++parts) >= limit) return std::nullopt;
    }
    Layout sum;
    sum.core = Core::sum;
    sum.base = list.offset(0);
    sum.parts.reserve(parts);
    for (std::size_t i = 0; i < list.size();) {
      const std::size_t runs = strided_prefix(list.from(i), room).runs;
      Layout part = strided({list.offset(i) - sum.base, list.length(i)}, room.modes);
      const Offset start = sum.size;
      sum.size += part.size;
      sum.parts.push_back({start, std::make_shared<const Layout>(std::move(part))});
      i += runs;
    }
    sum.core_size = sum.size;
    return sum;
  }

  RunList& whole_;
  std::size_t steps_;
};

}  // namespace

Layout recognise(RunList&& list) { return Recogniser(list).recognise(list.runs()); }

}  // namespace gapless::layout::build
