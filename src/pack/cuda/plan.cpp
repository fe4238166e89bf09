#include "pack/cuda/plan.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "layout/facts.hpp"

namespace gapless::pack::cuda {
namespace {

constexpr std::uint64_t index32_limit = std::uint64_t{1} << 31;  // what Divider<uint32_t> is exact for
constexpr Offset stride32_limit = Offset{1} << 31;
constexpr int largest_word_shift = 4;

bool is_table_nest(const Layout& layout) {
  return layout.core == layout::Core::index && layout.child->core == layout::Core::block;
}

std::size_t nest_modes(const Layout& layout) {
  return layout.modes.size() + (is_table_nest(layout) ? layout.child->modes.size() + 1 : 0);
}

/// Word level and repetition included.
bool fits_nest(const Layout& layout) {
  return (layout.is_strided() || is_table_nest(layout)) && nest_modes(layout) + 2 <= max_levels;
}

/// Adds a mode outside all others; merges it where the two are one.
void append(Shape& shape, Mode mode) {
  if (mode.count == 1) return;
  if (shape.mode_count == 0) {
    if (mode.stride == shape.length) {
      shape.length *= mode.count;
      return;
    }
  } else if (shape.mode_count - 1 != shape.table_mode) {
    Mode& last = shape.modes[shape.mode_count - 1];
    if (mode.stride == last.count * last.stride) {
      last.count *= mode.count;
      return;
    }
  }
  shape.modes[shape.mode_count++] = mode;
}

Shape nest_shape(const Layout& layout, Mode outer, std::uint64_t descriptor_alignment_bits) {
  Shape shape;
  shape.regime = Regime::nest;
  shape.base = layout.base;
  if (is_table_nest(layout)) {
    shape.base += layout.child->base;
    shape.length = layout.child->length;
    for (const Mode& mode : layout.child->modes) append(shape, mode);
    shape.table_mode = shape.mode_count;
    shape.modes[shape.mode_count++] = {static_cast<Offset>(layout.offsets.size()), 0};
    shape.alignment_bits = descriptor_alignment_bits;
  } else {
    shape.length = layout.length;
  }
  for (const Mode& mode : layout.modes) append(shape, mode);
  append(shape, outer);
  if (shape.mode_count == 0) shape.regime = Regime::contiguous;
  shape.alignment_bits |= static_cast<std::uint64_t>(shape.length);
  for (int i = 0; i < shape.mode_count; ++i) shape.alignment_bits |= static_cast<std::uint64_t>(shape.modes[i].stride);
  return shape;
}

/// log2 of the widest word that lengths, strides, both addresses and the packed position allow.
int word_shift(const Shape& shape, const Range& range) {
  const std::uint64_t first = range.memory + static_cast<std::uint64_t>(shape.base);
  const std::uint64_t bits = shape.alignment_bits | first | range.packed;
  return std::min(largest_word_shift, std::countr_zero(bits));
}

Range range_of(const Job& job) {
  Range range{};
  range.memory = reinterpret_cast<std::uintptr_t>(job.memory);
  range.begin = static_cast<std::uint64_t>(job.begin);
  range.packed = reinterpret_cast<std::uintptr_t>(job.packed) - range.begin;
  range.unpack = job.direction == Direction::unpack;
  return range;
}

void cut_words(Range& range, std::uint64_t end, int shift) {
  const std::uint64_t first = (range.begin + (std::uint64_t{1} << shift) - 1) >> shift;
  const std::uint64_t last = end >> shift;
  range.first_word = first;
  if (last <= first) {
    range.word_count = 0;
    range.head = static_cast<std::uint32_t>(end - range.begin);
    return;
  }
  range.word_count = last - first;
  range.head = static_cast<std::uint32_t>((first << shift) - range.begin);
  range.tail = static_cast<std::uint32_t>(end - (last << shift));
}

template <class Index>
Nest<Index> nest_of(const Shape& shape, const Descriptor* descriptor, int shift) {
  Nest<Index> nest{};
  nest.table_level = shape.table_mode + (shape.table_mode >= 0 ? 1 : 0);
  nest.word_shift = shift;
  using Stride = std::make_signed_t<Index>;
  nest.levels[0] = {make_divider(static_cast<Index>(shape.length >> shift)), Stride{1} << shift};
  for (int i = 0; i < shape.mode_count; ++i) {
    nest.levels[i + 1] = {make_divider(static_cast<Index>(shape.modes[i].count)),
                          static_cast<Stride>(shape.modes[i].stride)};
  }
  nest.level_count = shape.mode_count + 1;
  if (shape.table_mode >= 0) {
    nest.table = descriptor->table(descriptor->root().offsets);
  }
  return nest;
}

Tree tree_of(const Shape& shape, const Descriptor& descriptor, int shift) {
  return {descriptor.bytes(), make_divider(static_cast<std::uint64_t>(shape.repetition_size)), shape.extent, shift};
}

Segments segments_of(const Shape& shape, const Descriptor& descriptor, int shift) {
  const TreeNode& root = descriptor.root();
  return {tree_of(shape, descriptor, shift), root.core, descriptor.table(root.ends), descriptor.table(root.offsets),
          descriptor.table(root.coarse)};
}

/// Do all digits of words below `end_word`, all level counts and all strides fit 32 bits?
bool fits_index32(const Shape& shape, std::uint64_t end_word, int shift) {
  if (end_word >= index32_limit || static_cast<std::uint64_t>(shape.length >> shift) >= index32_limit) return false;
  return std::all_of(shape.modes, shape.modes + shape.mode_count, [](const Mode& mode) {
    return static_cast<std::uint64_t>(mode.count) < index32_limit && mode.stride < stride32_limit &&
           mode.stride >= -stride32_limit;
  });
}

}  // namespace

bool needs_descriptor(const Layout& layout) { return !(layout.is_strided() && fits_nest(layout)); }

Shape shape_of(const Layout& layout, Mode outer, std::uint64_t descriptor_alignment_bits) {
  Shape shape;
  if (fits_nest(layout)) {
    shape = nest_shape(layout, outer, descriptor_alignment_bits);
  } else {
    shape.regime = layout.core == layout::Core::segments ? Regime::segments : Regime::tree;
    shape.base = layout.base;
    shape.alignment_bits = descriptor_alignment_bits;
    if (outer.count > 1) shape.alignment_bits |= static_cast<std::uint64_t>(outer.stride);
  }
  shape.repetition_size = layout.size;
  shape.extent = outer.stride;
  return shape;
}

Launch prepare(const Job& job, const Shape& shape, const Descriptor* descriptor) noexcept {
  if (job.begin >= job.end) return {};
  Range range = range_of(job);
  const auto end = static_cast<std::uint64_t>(job.end);
  if (range.unpack && !shape.injective) return OrderedWork{range, tree_of(shape, *descriptor, 0), end - range.begin};
  if (shape.regime == Regime::contiguous) {
    return ContiguousWork{range.memory + static_cast<std::uint64_t>(shape.base) + range.begin,
                          range.packed + range.begin, end - range.begin, range.unpack};
  }
  const int shift = word_shift(shape, range);
  cut_words(range, end, shift);
  switch (shape.regime) {
    case Regime::segments:
      return SegmentsWork{range, segments_of(shape, *descriptor, shift)};
    case Regime::tree:
      return TreeWork{range, tree_of(shape, *descriptor, shift)};
    default:
      break;
  }
  // A tree carries its own base; a nest's goes into the address.
  range.memory += static_cast<std::uint64_t>(shape.base);
  if (fits_index32(shape, (end >> shift) + 1, shift)) {
    return NestWork<std::uint32_t>{range, nest_of<std::uint32_t>(shape, descriptor, shift)};
  }
  return NestWork<std::uint64_t>{range, nest_of<std::uint64_t>(shape, descriptor, shift)};
}

namespace {

/// What a thread remembers of one (layout, repetition, device).
struct Remembered {
  const Layout* layout = nullptr;
  std::weak_ptr<const Layout> alive;
  Mode outer{0, 0};
  int device = -1;
  std::uint64_t planner = 0;
  Shape shape;
  std::shared_ptr<Descriptor> descriptor;
  bool overlap_known = false;

  bool is_for(const Job& job, int wanted_device, std::uint64_t wanted_planner) const noexcept {
    return layout == job.layout && outer == job.outer && device == wanted_device && planner == wanted_planner &&
           !alive.expired();
  }
};

Remembered& slot(const Job& job, int device) {
  constexpr std::size_t slots = 64;
  thread_local std::array<Remembered, slots> remembered;
  const auto mix = reinterpret_cast<std::uintptr_t>(job.layout) / alignof(Layout) / 4 +
                   static_cast<std::uintptr_t>(job.outer.count) * 7 + static_cast<std::uintptr_t>(device) * 31;
  return remembered[mix % slots];
}

}  // namespace

Planner::Planner(DescriptorCache& cache) : cache_(cache) {
  static std::atomic<std::uint64_t> planners{0};
  identity_ = ++planners;
}

Planner::Planned Planner::plan(const Job& job, int device) {
  if (job.begin >= job.end) return {};
  Remembered& known = slot(job, device);
  if (!known.is_for(job, device, identity_)) {
    known = {};
    std::shared_ptr<Descriptor> descriptor;
    if (needs_descriptor(*job.layout)) {
      descriptor = cache_.find(*job.layout, device);
      if (!descriptor) return {{}, nullptr, true};
    }
    known.shape = shape_of(*job.layout, job.outer, descriptor ? descriptor->alignment_bits() : 0);
    known.descriptor = std::move(descriptor);
    known.alive = job.layout->weak_from_this();
    known.outer = job.outer;
    known.device = device;
    known.planner = identity_;
    known.layout = job.layout;
  }
  if (job.direction == Direction::unpack && !known.overlap_known) {
    known.shape.injective = layout::is_injective(*job.layout, job.outer);
    if (!known.shape.injective && !known.descriptor) {
      known.descriptor = cache_.find(*job.layout, device);
      if (!known.descriptor) {
        known = {};
        return {{}, nullptr, true};
      }
    }
    known.overlap_known = true;
  }
  return {prepare(job, known.shape, known.descriptor.get()), known.descriptor, false};
}

}  // namespace gapless::pack::cuda
