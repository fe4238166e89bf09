// Several copies between two layouts in one launch, such as all that arrives in a halo exchange: their work travels in
// the kernel's parameters.
#pragma once

#include <cstdint>
#include <span>

#include "device/runtime.hpp"
#include "pack/gpu/plan/pair_plan.hpp"
#include "pack/gpu/plan/plan.hpp"
#include "pack/gpu/regimes/pair.hpp"

namespace gapless::pack::gpu {

struct PairBatch {
  static constexpr int most = 28;  ///< as many as 4 KiB of parameters hold

  int count = 0;
  std::uint32_t first_tiles[most + 1] = {};  ///< of each, and how many there are in all
  PairWork<SmallPair> works[most];

  std::uint64_t tiles() const noexcept { return first_tiles[count]; }
};
static_assert(sizeof(PairBatch) <= 4000);

template <class Block>
GAPLESS_HOST_DEVICE void run_pair_batch_tile(const PairBatch& batch, std::uint32_t tile, const Block& block) noexcept {
  int i = 0;
  while (i + 1 < batch.count && tile >= batch.first_tiles[i + 1]) ++i;
  const PairWork<SmallPair>& work = batch.works[i];
  visit_word(work.word_shift,
             [&](auto word) { run_pair_tile<decltype(word)>(work, tile - batch.first_tiles[i], block); });
}

/// Makes launches. `is_last`: nothing follows in this call.
class PairSink {
 public:
  virtual device::Status launch(const PlannedPair& planned, bool is_last) = 0;
  virtual device::Status launch(const PairBatch& batch, bool is_last) = 0;

 protected:
  ~PairSink() = default;
};

/// Hands all jobs to the sink, those of a few modes together. The sink's first failure ends it. Throws std::bad_alloc.
device::Status issue(Planner& planner, std::span<const PairJob> jobs, int device, PairSink& sink);

}  // namespace gapless::pack::gpu
