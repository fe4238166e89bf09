#include "pack/gpu/describe/serialise.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

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
    const std::size_t count = layout.offsets.size();
    std::vector<Run> list;
    list.reserve(count + 1);
    Offset start = 0, bits = 0, farthest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      list.push_back({start, layout.offsets[i] - start});
      bits |= start | list.back().shift;
      farthest = std::max({farthest, list.back().shift, -list.back().shift});
      align_place(layout.offsets[i]);
      start = layout.ends[i];
      align_length(start);
    }
    list.push_back({start, 0});
    const int unit_shift = std::min(4, std::countr_zero(static_cast<std::uint64_t>(bits | start)));
    const bool narrow = std::max(start, farthest) >> unit_shift <= std::numeric_limits<std::int32_t>::max();
    return {narrow ? put_all(narrowed(list, unit_shift)) : put_all(list), narrow, unit_shift};
  }

  static std::vector<NarrowRun> narrowed(const std::vector<Run>& runs, int unit_shift) {
    std::vector<NarrowRun> result;
    result.reserve(runs.size());
    for (const Run& run : runs) {
      result.push_back(
          {static_cast<std::uint32_t>(run.start >> unit_shift), static_cast<std::int32_t>(run.shift >> unit_shift)});
    }
    return result;
  }

  template <class T>
  std::uint64_t put_all(const std::vector<T>& values) {
    const std::uint64_t position = reserve(values.size() * sizeof(T));
    std::memcpy(result_.bytes.data() + position, values.data(), values.size() * sizeof(T));
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
