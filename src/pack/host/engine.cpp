// Runs jobs: cuts the byte range along the levels of the plan into whole pieces, and hands those to the kernels.
//
// At every level the range is a partial head, a whole middle and a partial tail, so at most two chains of partial
// pieces descend, and everything between them is moved by loops of fixed shape.

#include "pack/host/engine.hpp"

#include <algorithm>

#include "layout/algebra/cursor.hpp"
#include "pack/host/fields.hpp"
#include "pack/host/kernels/kernels.hpp"
#include "pack/host/plan.hpp"
#include "pack/host/streaming.hpp"

namespace gapless::pack::host {
namespace {

using layout::Core;
using layout::OffsetTable;

List list_of(const OffsetTable& table) noexcept {
  if (table.is_narrow()) return {table.narrow().data(), nullptr};
  return {nullptr, table.wide().data()};
}

List advanced(List list, Offset entries) noexcept {
  if (list.narrow != nullptr) return {list.narrow + entries, nullptr};
  return {nullptr, list.wide + entries};
}

Offset entry_of(List list, Offset i) noexcept { return list.narrow != nullptr ? list.narrow[i] : list.wide[i]; }

Kernels::Rows* rows_kernel(const Kernels& kernels, Direction direction, Offset length) noexcept {
  return kernels.rows[table_index(length)][static_cast<std::size_t>(direction)];
}

/// Entries that a list's runs have on average where each is worth a loop of its own.
constexpr std::size_t long_run = 64;

/// Moves pieces of one job. In all functions `memory` is where offset 0 of the piece lies, and `packed` where its first
/// packed byte lies.
class Mover {
 public:
  /// streams: is what is unpacked stored past the caches?
  Mover(const Kernels& kernels, Direction direction, bool streams) noexcept
      : kernels_(kernels), direction_(direction), streams_(streams) {}

  /// Packed bytes [begin, end) of the first `top` levels of the plan.
  void range(const Plan& plan, int top, char* memory, char* packed, Offset begin, Offset end) const {
    if (top == 0) return core_range(plan, memory, packed, begin, end);
    const Level& level = plan.levels[top - 1];
    if (begin == 0 && end == level.unit * level.count) return whole(plan, top, level.count, memory, packed);
    Offset first = begin / level.unit;
    const Offset last = end / level.unit;
    const Offset head = begin - first * level.unit, tail = end - last * level.unit;
    if (first == last) return range(plan, top - 1, memory + first * level.stride, packed, head, tail);
    if (head > 0) {
      range(plan, top - 1, memory + first * level.stride, packed, head, level.unit);
      packed += level.unit - head;
      ++first;
    }
    if (first < last) {
      whole(plan, top, last - first, memory + first * level.stride, packed);
      packed += (last - first) * level.unit;
    }
    if (tail > 0) range(plan, top - 1, memory + last * level.stride, packed, 0, tail);
  }

  /// A whole layout whose core is a block.
  void whole(const Layout& layout, char* memory, char* packed) const {
    strided(make_nest(layout, dense()), memory + layout.base, packed);
  }

  /// Packed bytes [begin, end) of a repeated layout, wherever its base is.
  void layout_range(const Layout& layout, Mode outer, char* memory, char* packed, Offset begin, Offset end) const {
    if (begin == end) return;
    Plan plan;
    if (make_plan(layout, outer, plan)) {
      range(plan, plan.depth, memory + layout.base, packed, begin, end);
    } else {
      walk(layout, outer, memory, packed, begin, end);
    }
  }

 private:
  void bytes(char* memory, char* packed, Offset count) const {
    if (direction_ == Direction::pack) {
      kernels_.bytes(memory, packed, count);
    } else {
      kernels_.bytes(packed, memory, count);
    }
  }

  Dense dense() const noexcept { return direction_ == Direction::pack ? Dense::destination : Dense::source; }

  void walk(const Layout& layout, Mode outer, char* memory, char* packed, Offset begin, Offset end) const {
    layout::Cursor cursor(layout, outer, begin, end);
    for (layout::Segment run; cursor.next(run); packed += run.length) bytes(memory + run.offset, packed, run.length);
  }

  /// Whole pieces: the first `top` levels of the plan, with `count` repetitions of the outermost of them.
  void whole(const Plan& plan, int top, Offset count, char* memory, char* packed) const {
    if (plan.layout->core == Core::block) return strided(make_nest(plan, top, count, dense()), memory, packed);
    if (top <= 1) {
      const Level once{1, 0, plan.layout->core_size};
      return cores(*plan.layout, top == 0 ? once : Level{count, plan.levels[0].stride, plan.levels[0].unit}, memory,
                   packed);
    }
    const Level& level = plan.levels[top - 1];
    for (Offset i = 0; i < count; ++i, memory += level.stride, packed += level.unit) {
      whole(plan, top - 1, plan.levels[top - 2].count, memory, packed);
    }
  }

  void nest(const Nest& nest, char* memory, char* packed) const {
    const Loop& loop = nest.loops[0];
    const bool packs = direction_ == Direction::pack;
    if (streams_ && writes_whole_lines(nest, memory)) return kernels_.streamed(nest, packed, memory);
    if (nest.depth == 1 && (packs ? loop.destination_stride : loop.source_stride) == nest.length) {
      const Offset stride = packs ? loop.source_stride : loop.destination_stride;
      return rows_kernel(kernels_, direction_, nest.length)(loop.count, stride, memory, packed, nest.length);
    }
    const auto move = kernels_.nest[table_index(nest.length)];
    if (packs) {
      move(nest, memory, packed);
    } else {
      move(nest, packed, memory);
    }
  }

  void strided(const Nest& loops, char* memory, char* packed) const {
    if (loops.depth < 2) return nest(loops, memory, packed);
    const bool packs = direction_ == Direction::pack;
    Transpose tiles;
    if (find_transpose(loops, dense(), tiles)) {
      const Transposer& transposer = kernels_.transpose[tiles.log2_length];
      if (transposer.run != nullptr && std::min(tiles.rows, tiles.columns) >= transposer.edge) {
        return transposes(tiles, tiles.depth, packs ? memory : packed, packs ? packed : memory);
      }
    }
    Strips parts;
    if (!split_strips(loops, dense(), parts)) return nest(loops, memory, packed);
    nest(parts.main, memory, packed);
    if (parts.rest.depth < 0) return;
    nest(parts.rest, memory + (packs ? parts.rest_source : parts.rest_destination),
         packed + (packs ? parts.rest_destination : parts.rest_source));
  }

  /// A transpose in the first `depth` of the loops around it.
  void transposes(const Transpose& tiles, int depth, const char* source, char* destination) const {
    if (depth == 0) {
      return kernels_.transpose[tiles.log2_length].run(tiles.rows, tiles.columns, tiles.source_stride,
                                                       tiles.destination_stride, source, destination);
    }
    const Loop& loop = tiles.loops[depth - 1];
    for (Offset i = 0; i < loop.count; ++i, source += loop.source_stride, destination += loop.destination_stride) {
      transposes(tiles, depth - 1, source, destination);
    }
  }

  /// Repetitions of a core that is not a block.
  void cores(const Layout& layout, Level level, char* memory, char* packed) const {
    Fields fields;
    if (level.count >= fields_from && fields.collect(layout, level, dense())) {
      return repeated_fields(fields, level, memory, packed);
    }
    for (Offset i = 0; i < level.count; ++i, memory += level.stride, packed += level.unit) {
      switch (layout.core) {
        case Core::index:
          entries(layout, 0, static_cast<Offset>(layout.offsets.size()), memory, packed);
          break;
        case Core::segments:
          runs(layout, 0, static_cast<Offset>(layout.offsets.size()), memory, packed);
          break;
        case Core::sum:
          for (const layout::Part& part : layout.parts) {
            layout_range(*part.layout, {1, 0}, memory, packed + part.start, 0, part.layout->size);
          }
          break;
        case Core::block:
          break;
      }
    }
  }

  void repeated_fields(const Fields& fields, Level level, char* memory, char* packed) const {
    for (Offset done = 0; done < level.count; done += fields.tile) {
      const Offset count = std::min(fields.tile, level.count - done);
      char* records = memory + done * level.stride;
      char* packed_records = packed + done * level.unit;
      for (int i = 0; i < fields.count; ++i) {
        const Field& field = fields.field[i];
        if (i + 1 < fields.count && field.is_paired() && fields.field[i + 1].is_paired()) {
          pair(fields.pair(i++, count, level, dense()), records + field.memory, packed_records + field.packed);
        } else {
          nest(fields.nest(field, count, level, dense()), records + field.memory, packed_records + field.packed);
        }
      }
    }
  }

  void pair(const Pair& pair, char* memory, char* packed) const {
    const auto move = kernels_.pairs[field_class(pair.length[0])].with[field_class(pair.length[1])];
    if (direction_ == Direction::pack) {
      move(pair, memory, packed);
    } else {
      move(pair, packed, memory);
    }
  }

  /// Entries [first, last) of an index core.
  void entries(const Layout& layout, Offset first, Offset last, char* memory, char* packed) const {
    const OffsetTable& offsets = layout.offsets;
    if (!offsets.has_runs()) {
      return listed(*layout.child, advanced(list_of(offsets), first), last - first, memory, packed);
    }
    if (offsets.size() / offsets.run_count() >= long_run) return long_runs(layout, first, last, memory, packed);
    const ListInRuns runs{list_of(offsets.run_firsts()), list_of(offsets.run_offsets()), offsets.run(0).stride};
    constexpr Offset at_once = 512;
    Offset expanded[at_once + expansion_slack];
    for (Offset end; first < last; first = end) {
      end = std::min(first + at_once, last);
      kernels_.expand(runs, static_cast<Offset>(offsets.run_of(first)), first, end, expanded);
      listed(*layout.child, {nullptr, expanded}, end - first, memory, packed);
      packed += (end - first) * layout.child->size;
    }
  }

  /// The child at each offset of a list.
  void listed(const Layout& child, List offsets, Offset count, char* memory, char* packed) const {
    Plan plan;
    if (child.core == Core::block && make_plan(child, {1, 0}, plan)) {
      const Nest loops = make_nest(plan, plan.depth, plan.depth > 0 ? plan.levels[plan.depth - 1].count : 1, dense());
      if (direction_ == Direction::pack) {
        kernels_.gather[table_index(loops.length)](loops, offsets, count, child.size, memory + child.base, packed);
      } else {
        kernels_.scatter[table_index(loops.length)](loops, offsets, count, child.size, packed, memory + child.base);
      }
      return;
    }
    if (listed_records(child, offsets, count, memory, packed)) return;
    for (Offset i = 0; i < count; ++i, packed += child.size) {
      layout_range(child, {1, 0}, memory + entry_of(offsets, i), packed, 0, child.size);
    }
  }

  /// Records at each offset of a list, whose fields are collected once for all; false if the child is no record.
  bool listed_records(const Layout& child, List offsets, Offset count, char* memory, char* packed) const {
    if (count < fields_from || child.modes.size() > 1) return false;
    const Level once{1, 0, child.core_size};
    const Level level = child.modes.empty() ? once : Level{child.modes[0].count, child.modes[0].stride, once.unit};
    Fields fields;
    if (!fields.collect(child, level, dense())) return false;
    memory += child.base;
    if (level.count == 1 && fields.are_plain()) {
      const auto move = kernels_.records[static_cast<std::size_t>(direction_)];
      move(fields.field, fields.count, offsets, count, child.size, memory, packed);
      return true;
    }
    for (Offset i = 0; i < count; ++i, packed += child.size) {
      repeated_fields(fields, level, memory + entry_of(offsets, i), packed);
    }
    return true;
  }

  /// Entries [first, last) of an index core, each run of them as one loop over the child.
  void long_runs(const Layout& layout, Offset first, Offset last, char* memory, char* packed) const {
    const Layout& child = *layout.child;
    for (std::size_t i = layout.offsets.run_of(first); first < last; ++i) {
      const layout::OffsetRun run = layout.offsets.run(i);
      const Offset count = std::min(run.first + run.count, last) - first;
      char* begin = memory + run.offset + (first - run.first) * run.stride;
      if (child.is_contiguous()) {
        rows_kernel(kernels_, direction_, child.length)(count, run.stride, begin + child.base, packed, child.length);
      } else {
        layout_range(child, {count, run.stride}, begin, packed, 0, count * child.size);
      }
      packed += count * child.size;
      first += count;
    }
  }

  /// Runs [first, last) of a segments core.
  void runs(const Layout& layout, Offset first, Offset last, char* memory, char* packed) const {
    if (direction_ == Direction::pack) {
      kernels_.gather_runs(list_of(layout.offsets), list_of(layout.ends), first, last, memory, packed);
    } else {
      kernels_.scatter_runs(list_of(layout.offsets), list_of(layout.ends), first, last, memory, packed);
    }
  }

  void core_range(const Plan& plan, char* memory, char* packed, Offset begin, Offset end) const {
    const Layout& layout = *plan.layout;
    switch (layout.core) {
      case Core::block:
        return bytes(memory + begin, packed, end - begin);
      case Core::index:
        return index_range(layout, memory, packed, begin, end);
      case Core::segments:
        return segments_range(layout, memory, packed, begin, end);
      case Core::sum:
        return sum_range(layout, memory, packed, begin, end);
    }
  }

  void index_range(const Layout& layout, char* memory, char* packed, Offset begin, Offset end) const {
    const Layout& child = *layout.child;
    const auto entry = [&](Offset i, Offset from, Offset to) {
      layout_range(child, {1, 0}, memory + layout.offsets[static_cast<std::size_t>(i)], packed, from, to);
      packed += to - from;
    };
    Offset first = begin / child.size;
    const Offset last = end / child.size;
    const Offset head = begin - first * child.size, tail = end - last * child.size;
    if (first == last) return entry(first, head, tail);
    if (head > 0) entry(first++, head, child.size);
    if (first < last) {
      entries(layout, first, last, memory, packed);
      packed += (last - first) * child.size;
    }
    if (tail > 0) entry(last, 0, tail);
  }

  /// The run that holds packed byte k.
  static Offset run_of(const OffsetTable& ends, Offset k) noexcept {
    const auto find = [k](auto span) { return std::upper_bound(span.begin(), span.end(), k) - span.begin(); };
    return ends.is_narrow() ? find(ends.narrow()) : find(ends.wide());
  }

  void segments_range(const Layout& layout, char* memory, char* packed, Offset begin, Offset end) const {
    const auto at = [](const OffsetTable& table, Offset i) { return table[static_cast<std::size_t>(i)]; };
    if (begin == end) return;
    Offset first = run_of(layout.ends, begin);
    const Offset last = run_of(layout.ends, end - 1);  // the run that holds the last byte
    const Offset start = first > 0 ? at(layout.ends, first - 1) : 0;
    const Offset last_start = last > 0 ? at(layout.ends, last - 1) : 0;
    if (first == last) return bytes(memory + at(layout.offsets, first) + (begin - start), packed, end - begin);
    if (begin > start) {
      const Offset count = at(layout.ends, first) - begin;
      bytes(memory + at(layout.offsets, first) + (begin - start), packed, count);
      packed += count;
      begin += count;
      ++first;
    }
    runs(layout, first, last, memory, packed);
    packed += last_start - begin;
    bytes(memory + at(layout.offsets, last), packed, end - last_start);
  }

  void sum_range(const Layout& layout, char* memory, char* packed, Offset begin, Offset end) const {
    auto part = std::upper_bound(layout.parts.begin(), layout.parts.end(), begin,
                                 [](Offset k, const layout::Part& p) { return k < p.start; }) -
                1;
    for (; part != layout.parts.end() && part->start < end; ++part) {
      const Offset from = std::max(begin - part->start, Offset{0});
      const Offset to = std::min(end - part->start, part->layout->size);
      layout_range(*part->layout, {1, 0}, memory, packed, from, to);
      packed += to - from;
    }
  }

  const Kernels& kernels_;
  const Direction direction_;
  const bool streams_;
};

/// Is the job a whole block, repeated?
bool is_repeated_block(const Job& job) noexcept {
  const Layout& layout = *job.layout;
  return layout.is_contiguous() && job.outer.stride != layout.length && job.begin == 0 && job.end > 0 &&
         job.end == layout.length * job.outer.count;
}

/// Is the job one whole layout of blocks in loops?
bool is_one_nest(const Job& job) noexcept {
  const Layout& layout = *job.layout;
  return layout.core == Core::block && job.outer.count == 1 && job.begin == 0 && job.end > 0 &&
         job.end == layout.size && layout.modes.size() < max_loops;
}

[[gnu::always_inline]] inline void run_row(const Kernels& kernels, const Job& job, Mode row) {
  const Offset length = job.layout->length;
  return rows_kernel(kernels, job.direction, length)(
      row.count, row.stride, static_cast<char*>(job.memory) + job.layout->base, static_cast<char*>(job.packed), length);
}

[[gnu::noinline]] void run_any(const Job& job) {
  const Kernels& table = kernels();
  const bool streams = table.streamed != nullptr && unpacks_much(job, streamed_from.load(std::memory_order_relaxed));
  if (!streams && is_repeated_block(job)) return run_row(table, job, job.outer);
  const Layout& layout = *job.layout;
  const Mover mover(table, job.direction, streams);
  auto* const memory = static_cast<char*>(job.memory);
  auto* const packed = static_cast<char*>(job.packed);
  if (is_one_nest(job)) {
    mover.whole(layout, memory, packed);
  } else {
    mover.layout_range(layout, job.outer, memory, packed, job.begin, job.end);
  }
  if (streams) table.end_streams();
}

}  // namespace

// The commonest job, one whole row of blocks, goes straight to its loop: for a small one every instruction before the
// first byte counts, and every jump taken.
[[gnu::aligned(64)]] void run(const Job& job) {
  const Kernels* table = chosen_kernels.load(std::memory_order_relaxed);
  const Layout& layout = *job.layout;
  if (table == nullptr || job.begin != 0 || job.outer.count != 1 || job.end != layout.size ||
      job.end >= streamed_from.load(std::memory_order_relaxed) || layout.core != Core::block ||
      layout.modes.size() != 1) [[unlikely]] {
    return run_any(job);
  }
  run_row(*table, job, layout.modes[0]);
}

void run(std::span<const Job> jobs) {
  for (const Job& job : jobs) run(job);
}

}  // namespace gapless::pack::host
