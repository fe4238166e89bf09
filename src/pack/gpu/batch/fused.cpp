#include "pack/gpu/batch/fused.hpp"

#include <algorithm>
#include <bit>

#include "model/gpu.hpp"

namespace gapless::pack::gpu {
namespace {

/// A nest of one level: words in a row, and the bytes that are left over.
NestWork<std::uint32_t> row(const ContiguousWork& copy) noexcept {
  NestWork<std::uint32_t> work{};
  const int shift = std::min(largest_word_shift, std::countr_zero(copy.memory | copy.packed));
  const auto rest = static_cast<std::uint32_t>(copy.bytes & ((std::uint64_t{1} << shift) - 1));
  work.range = {copy.memory, copy.packed, 0, 0, copy.bytes >> shift, 0, rest, copy.unpack};
  work.words_per_thread = fused_words_per_thread;
  work.nest = row_nest<std::uint32_t>(shift);
  return work;
}

/// Precondition: it has no table and at most SmallNest::most_levels levels.
SmallNest small_nest(const NestWork<std::uint32_t>& work) noexcept {
  const Range& range = work.range;
  const int shift = work.nest.word_shift;
  SmallNest small{};
  small.memory = range.memory;
  small.packed = range.packed;
  small.first_word = static_cast<std::uint32_t>(range.first_word);
  small.word_count = static_cast<std::uint32_t>(range.word_count);
  small.skipped = static_cast<std::uint8_t>((range.first_word << shift) - range.begin);
  small.head = static_cast<std::uint8_t>(range.head);
  small.tail = static_cast<std::uint8_t>(range.tail);
  small.shift = static_cast<std::uint8_t>(shift);
  small.level_count = static_cast<std::uint8_t>(work.nest.level_count);
  small.unpack = range.unpack;
  for (int i = 0; i < work.nest.level_count; ++i) {
    small.levels[i] = {work.nest.levels[i].stride, work.nest.levels[i].count};
  }
  return small;
}

struct Fuse {
  using Result = std::optional<FusedWork>;

  Result operator()(const ContiguousWork& work) const noexcept {
    return work.bytes <= model::gpu_tuning.largest_fused_copy ? Result(small_nest(row(work))) : std::nullopt;
  }
  Result operator()(NestWork<std::uint32_t> work) const noexcept {
    if (work.nest.table_level < 0 && work.nest.level_count <= SmallNest::most_levels) return small_nest(work);
    work.words_per_thread = fused_words_per_thread;
    return work;
  }
  template <class Entry>
  Result operator()(const SegmentsWork<Entry>& work) const noexcept {
    return TreeWork{work.range, work.tree};
  }
  Result operator()(const TreeWork& work) const noexcept { return work; }
  Result operator()(const OrderedWork& work) const noexcept { return work; }
  template <class Work>
  Result operator()(const Work&) const noexcept {
    return std::nullopt;
  }
};

}  // namespace

std::optional<FusedWork> fused(const Launch& work) noexcept { return std::visit(Fuse{}, work); }

std::optional<NestWork<std::uint32_t>> short_copy(const Launch& work) noexcept {
  const auto* copy = std::get_if<ContiguousWork>(&work);
  if (copy == nullptr || copy->bytes > model::gpu_tuning.largest_fused_copy) return std::nullopt;
  return row(*copy);
}

FusedTag tag_of(const FusedWork& work) noexcept {
  const auto kind = static_cast<FusedKind>(work.index());
  return {kind, std::visit([](const auto& any) { return static_cast<std::uint8_t>(any.word_shift()); }, work)};
}

std::uint64_t tiles_of(const FusedWork& work) noexcept {
  return std::visit([](const auto& any) { return any.tiles(); }, work);
}

std::span<const std::byte> bytes_of(const FusedWork& work) noexcept {
  const auto all = std::visit([](const auto& any) { return std::as_bytes(std::span(&any, 1)); }, work);
  if (const auto* small = std::get_if<SmallNest>(&work)) return all.first(small->size());
  const auto* nest = std::get_if<NestWork<std::uint32_t>>(&work);
  if (nest == nullptr) return all;
  return all.first(sizeof *nest -
                   static_cast<std::size_t>(max_levels - nest->nest.level_count) * sizeof nest->nest.levels[0]);
}

}  // namespace gapless::pack::gpu
