// Work of a few regimes as tagged bytes, so that one kernel can run jobs of all kinds.
//
// Small jobs are bound by latency, so the regimes that exist for bandwidth are left out: nests with 32-bit indices, the
// tree for everything else, and ordered unpacking. Of a nest only the levels in use are carried.
#pragma once

#include <optional>
#include <variant>

#include "pack/cuda/plan.hpp"

namespace gapless::pack::cuda {

enum class FusedKind : std::uint8_t { nest, tree, ordered };

struct FusedTag {
  FusedKind kind;
  std::uint8_t word_shift;
};

/// Words that each thread has in flight, whatever the work asks for: enough for jobs of a few tiles, and compiled once.
inline constexpr int fused_words_per_thread = 2;

using FusedWork = std::variant<NestWork<std::uint32_t>, TreeWork, OrderedWork>;

/// The same movement as a work that fused kernels run; nothing where only a kernel of its own, or the copy engine, does
/// it well.
std::optional<FusedWork> fused(const Launch& work) noexcept;

/// A short contiguous copy as a kernel's work, because a copy engine completes nothing; anything else as it is.
Launch as_kernel_work(const Launch& work) noexcept;

FusedTag tag_of(const FusedWork& work) noexcept;
std::uint64_t tiles_of(const FusedWork& work) noexcept;
/// The work's bytes, as far as they are worth carrying.
std::span<const std::byte> bytes_of(const FusedWork& work) noexcept;

/// The tree as a locator that is called, not inlined: it would be the larger part of a fused kernel.
struct CalledTree {
  const Tree& tree;

  GAPLESS_HOST_DEVICE_CALLED Offset at(std::uint64_t word) const noexcept { return tree.at(word); }
  GAPLESS_HOST_DEVICE_CALLED Offset byte(std::uint64_t k) const noexcept { return tree.byte(k); }
};

/// Runs one tile of the work whose bytes lie at `bytes`. Precondition: tile < tiles_of() that work.
template <class Block>
GAPLESS_HOST_DEVICE void run_fused_tile(FusedTag tag, const std::byte* bytes, std::uint64_t tile,
                                        const Block& block) noexcept {
  if (tag.kind == FusedKind::ordered) {
    NothingShared shared;
    return run_tile<std::uint8_t>(*reinterpret_cast<const OrderedWork*>(bytes), tile, block, shared);
  }
  visit_word(tag.word_shift, [&](auto word) {
    using Word = decltype(word);
    if (tag.kind == FusedKind::nest) {
      const auto& work = *reinterpret_cast<const NestWork<std::uint32_t>*>(bytes);
      return run_known_tile<Word, AnyForm, fused_words_per_thread>(work, tile, block);
    }
    const auto& work = *reinterpret_cast<const TreeWork*>(bytes);
    const CalledTree tree{work.tree};
    if (tile == 0) copy_edges(work.range, tree, tag.word_shift, block);
    copy_tile<Word, std::uint64_t, TreeWork::words_per_thread>(work.range, tree, tile, block);
  });
}

}  // namespace gapless::pack::cuda
