#include "pack/gpu/describe/serialise.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <span>

#include "pack/gpu/regimes/tree.hpp"

namespace gapless::pack::gpu {
namespace {

class Writer {
 public:
  Serialised take() { return std::move(result_); }

  std::uint64_t node(const layout::Layout& layout, bool is_root) {
    const std::uint64_t position = reserve(sizeof(TreeNode));
    TreeNode node{};
    node.base = layout.base;
    node.core = divider(layout.core_size);
    node.kind = static_cast<std::uint32_t>(layout.core);
    node.mode_count = static_cast<std::uint32_t>(layout.modes.size());
    node.modes = modes(layout);
    if (!is_root) align_place(layout.base);
    switch (layout.core) {
      case layout::Core::block:
        align_length(layout.length);
        break;
      case layout::Core::index:
        node.entry_count = layout.offsets.size();
        node.offsets = table(layout.offsets);
        node.child = divider(layout.child->size);
        node.children = this->node(*layout.child, false);
        break;
      case layout::Core::segments:
        node.entry_count = layout.offsets.size();
        node.runs = runs(layout);
        node.hints = hints(layout);
        break;
      case layout::Core::sum:
        sum(layout, node);
        break;
    }
    std::memcpy(result_.bytes.data() + position, &node, sizeof node);
    return position;
  }

 private:
  std::uint64_t reserve(std::size_t bytes) {
    const std::size_t position = (result_.bytes.size() + 15) / 16 * 16;
    result_.bytes.resize(position + bytes);
    return position;
  }

  template <class T>
  void put(std::uint64_t position, const T& value) {
    std::memcpy(result_.bytes.data() + position, &value, sizeof value);
  }

  void align_length(Offset value) { result_.alignment_bits.all |= static_cast<std::uint64_t>(value); }
  void align_place(Offset value) {
    result_.alignment_bits.all |= static_cast<std::uint64_t>(value);
    result_.alignment_bits.places |= static_cast<std::uint64_t>(value);
  }

  static Divider<std::uint64_t> divider(Offset value) { return make_divider(static_cast<std::uint64_t>(value)); }

  std::uint64_t modes(const layout::Layout& layout) {
    const std::uint64_t position = reserve(layout.modes.size() * sizeof(TreeMode));
    for (std::size_t i = 0; i < layout.modes.size(); ++i) {
      put(position + i * sizeof(TreeMode), TreeMode{divider(layout.modes[i].count), layout.modes[i].stride});
      align_place(layout.modes[i].stride);
    }
    return position;
  }

  TreeTable table(const layout::OffsetTable& offsets) {
    for (std::size_t i = 0; i < offsets.run_count(); ++i) {
      const layout::OffsetRun run = offsets.run(i);
      align_place(run.offset);
      align_place(run.stride);
    }
    return unaligned_table(offsets.expanded());
  }

  /// A table whose entries are no places in memory or in the packed stream.
  TreeTable unaligned_table(const layout::OffsetTable& offsets) {
    const std::uint64_t position = reserve(offsets.memory_bytes());
    const void* entries = offsets.is_narrow() ? static_cast<const void*>(offsets.narrow().data())
                                              : static_cast<const void*>(offsets.wide().data());
    std::memcpy(result_.bytes.data() + position, entries, offsets.memory_bytes());
    return {position, offsets.is_narrow()};
  }

  TreeRuns runs(const layout::Layout& layout) {
    const layout::OffsetTable offsets = layout.offsets.expanded(), ends = layout.ends.expanded();
    return offsets.with_entries(
        [&](auto places) { return ends.with_entries([&](auto run_ends) { return put_runs(places, run_ends); }); });
  }

  template <class Place, class End>
  TreeRuns put_runs(std::span<const Place> places, std::span<const End> ends) {
    Offset start = 0, start_bits = 0, place_bits = 0, shift_bits = 0, farthest = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Offset shift = places[i] - start;
      place_bits |= places[i];
      shift_bits |= shift;
      farthest = std::max({farthest, shift, -shift});
      start = ends[i];
      start_bits |= start;
    }
    align_place(place_bits);
    align_length(start_bits);
    const int unit_shift = std::min(4, std::countr_zero(static_cast<std::uint64_t>(start_bits | shift_bits)));
    const bool narrow = std::max(start, farthest) >> unit_shift <= std::numeric_limits<std::int32_t>::max();
    return {narrow ? put_runs_as<NarrowRun>(places, ends, unit_shift) : put_runs_as<Run>(places, ends, 0), narrow,
            unit_shift};
  }

  /// The runs in units of 1 << unit_shift bytes, and one more that starts where the last one ends.
  template <class Entry, class Place, class End>
  std::uint64_t put_runs_as(std::span<const Place> places, std::span<const End> ends, int unit_shift) {
    const auto entry = [unit_shift](Offset start, Offset shift) {
      return Entry{static_cast<decltype(Entry::start)>(start >> unit_shift),
                   static_cast<decltype(Entry::shift)>(shift >> unit_shift)};
    };
    const std::uint64_t position = reserve((places.size() + 1) * sizeof(Entry));
    Entry* const entries = reinterpret_cast<Entry*>(result_.bytes.data() + position);
    Offset start = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      entries[i] = entry(start, places[i] - start);
      start = ends[i];
    }
    entries[places.size()] = entry(start, 0);
    return position;
  }

  TreeTable hints(const layout::Layout& layout) {
    const bool narrow = layout.ends.size() <= std::numeric_limits<std::int32_t>::max();
    return {narrow ? put_hints<std::int32_t>(layout) : put_hints<std::int64_t>(layout), narrow};
  }

  /// Long runs fill many hints each, so each run fills its own.
  template <class T>
  std::uint64_t put_hints(const layout::Layout& layout) {
    const auto stretches = static_cast<std::size_t>((layout.core_size - 1) >> hint_shift) + 1;
    const std::uint64_t position = reserve((stretches + 1) * sizeof(T));
    T* next = reinterpret_cast<T*>(result_.bytes.data() + position);
    Offset filled = 0;
    for (std::size_t run = 0; run < layout.ends.size(); ++run) {
      const Offset end = ((layout.ends[run] - 1) >> hint_shift) + 1;
      next = std::fill_n(next, end - filled, static_cast<T>(run));
      filled = end;
    }
    *next = static_cast<T>(layout.ends.size() - 1);
    return position;
  }

  void sum(const layout::Layout& layout, TreeNode& node) {
    std::vector<Offset> ends;
    for (const auto& part : layout.parts) ends.push_back(part.start + part.layout->size);
    node.entry_count = layout.parts.size();
    for (const Offset end : ends) align_length(end);
    node.ends = unaligned_table(layout::OffsetTable(ends));
    node.children = reserve(layout.parts.size() * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < layout.parts.size(); ++i) {
      put(node.children + i * sizeof(std::uint64_t), this->node(*layout.parts[i].layout, false));
    }
  }

  Serialised result_;
};

}  // namespace

Serialised serialise(const layout::Layout& layout) {
  Writer writer;
  writer.node(layout, true);
  return writer.take();
}

}  // namespace gapless::pack::gpu
