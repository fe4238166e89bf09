// From a pair job to the kernel that runs it.
#pragma once

#include "pack/gpu/plan/plan.hpp"
#include "pack/gpu/regimes/pair.hpp"
#include "pack/pair_job.hpp"

namespace gapless::pack::gpu {

/// ContiguousWork, memory to packed, where both sides are contiguous.
using PairLaunch = std::variant<std::monostate, ContiguousWork, PairWork<RefinedPair>, PairWork<NestPair>,
                                PairWork<AnyPair>, OrderedPairWork>;

struct PlannedPair {
  PairLaunch launch;
  std::shared_ptr<Descriptor> source, destination;  ///< must live until the kernel is done
  bool out_of_memory = false;
};

/// Words that are read over a link all at once take little longer than one.
int pair_words_per_thread(std::uint64_t words) noexcept;

/// For the calling thread; a pair planned before costs no allocation. Throws std::bad_alloc.
PlannedPair plan_pair(Planner& planner, const PairJob& job, int device);

}  // namespace gapless::pack::gpu
