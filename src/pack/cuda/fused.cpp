#include "pack/cuda/fused.hpp"

#include <algorithm>
#include <bit>

namespace gapless::pack::cuda {
namespace {

constexpr std::uint64_t largest_fused_copy = std::uint64_t{1} << 20;  // the copy engine is faster beyond

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

struct Fuse {
  using Result = std::optional<FusedWork>;

  Result operator()(const ContiguousWork& work) const noexcept {
    return work.bytes <= largest_fused_copy ? Result(row(work)) : std::nullopt;
  }
  Result operator()(NestWork<std::uint32_t> work) const noexcept {
    work.words_per_thread = fused_words_per_thread;
    return work;
  }
  Result operator()(const SegmentsWork& work) const noexcept { return TreeWork{work.range, work.tree}; }
  Result operator()(const TreeWork& work) const noexcept { return work; }
  Result operator()(const OrderedWork& work) const noexcept { return work; }
  template <class Work>
  Result operator()(const Work&) const noexcept {
    return std::nullopt;
  }
};

}  // namespace

std::optional<FusedWork> fused(const Launch& work) noexcept { return std::visit(Fuse{}, work); }

Launch as_kernel_work(const Launch& work) noexcept {
  const auto* copy = std::get_if<ContiguousWork>(&work);
  return copy != nullptr && copy->bytes <= largest_fused_copy ? Launch(row(*copy)) : work;
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
  const auto* nest = std::get_if<NestWork<std::uint32_t>>(&work);
  if (nest == nullptr) return all;
  return all.first(sizeof *nest -
                   static_cast<std::size_t>(max_levels - nest->nest.level_count) * sizeof nest->nest.levels[0]);
}

}  // namespace gapless::pack::cuda
