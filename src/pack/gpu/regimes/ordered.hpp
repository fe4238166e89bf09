// Regime ordered: one run after the other, for unpacking into a layout that names a byte twice, where MPI leaves no
// doubt only if the later packed byte wins.
#pragma once

#include "pack/gpu/regimes/tree.hpp"

namespace gapless::pack::gpu {

struct OrderedWork {
  using Shared = NothingShared;

  Range range;
  Tree tree;
  std::uint64_t bytes;

  GAPLESS_HOST_DEVICE std::uint64_t tiles() const noexcept { return 1; }
  GAPLESS_HOST_DEVICE int word_shift() const noexcept { return 0; }
};

template <class Word, class Block>
GAPLESS_HOST_DEVICE void run_tile(const OrderedWork& work, std::uint64_t, const Block& block, NothingShared&) noexcept {
  for (std::uint64_t done = 0; done < work.bytes;) {
    const std::uint64_t k = work.range.begin + done;
    const TreePlace place = work.tree.place(k);
    const std::uint64_t left = work.bytes - done;
    const std::uint64_t length = place.remaining < left ? place.remaining : left;
    const std::uintptr_t memory = work.range.memory + static_cast<std::uintptr_t>(place.offset);
    const std::uintptr_t packed = work.range.packed + k;
    // Bytes of one run never overlap, so its threads need no order among themselves.
    block.threads([&](int thread) {
      for (auto i = static_cast<std::uint64_t>(thread); i < length; i += threads_per_block) {
        *block.space.template at<Word>((work.range.unpack ? memory : packed) + i) =
            *block.space.template at<const Word>((work.range.unpack ? packed : memory) + i);
      }
    });
    block.barrier();
    done += length;
  }
}

}  // namespace gapless::pack::gpu
