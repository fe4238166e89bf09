// From a job to the kernel that runs it: which regime, which word, which index width.
//
// What depends on the layout alone (a Shape) is worked out once a thread and cached; what depends on pointers and
// range (a Launch) is a few dozen instructions a job.
#pragma once

#include <memory>
#include <variant>

#include "pack/gpu/describe/descriptor_cache.hpp"
#include "pack/gpu/plan/shape.hpp"
#include "pack/gpu/regimes/contiguous.hpp"
#include "pack/gpu/regimes/interleaved.hpp"
#include "pack/gpu/regimes/ordered.hpp"
#include "pack/gpu/regimes/sectors.hpp"
#include "pack/gpu/regimes/segments.hpp"
#include "pack/gpu/regimes/shifted.hpp"
#include "pack/gpu/regimes/transpose.hpp"

namespace gapless::pack::gpu {

/// Each but the first two has tiles() and word_shift(), and all but the nests a type Shared and
/// run_tile<Word>(work, tile, block, shared), to be called after prepare_tile.
using Launch = std::variant<std::monostate, ContiguousWork, NestWork<std::uint32_t>, NestWork<std::uint64_t>,
                            ShiftedWork, SectorsWork, TransposeWork, InterleavedWork, SegmentsWork<NarrowRun>,
                            SegmentsWork<Run>, TreeWork, OrderedWork>;

/// Which regime runs the job, which is whole. `forced`: the one to take if it can.
Regime regime_of(const Job& job, const Shape& shape, std::optional<Regime> forced = {}) noexcept;

/// monostate for an empty range. `descriptor` may be null where needs_descriptor is false and the shape is injective.
/// `forced`: the regime to take if it can run the job.
Launch prepare(const Job& job, const Shape& shape, const Descriptor* descriptor,
               std::optional<Regime> forced = {}) noexcept;

/// Shapes and descriptors of the layouts a thread used last, so that a repeated job costs no lock and no allocation.
class Planner {
 public:
  explicit Planner(DescriptorCache& cache);

  struct Planned {
    Launch launch;
    std::shared_ptr<Descriptor> descriptor;  ///< must live until the kernel is done
    bool out_of_memory = false;
  };
  /// For the calling thread. `preferred`: the regime to take if it can run the job, whatever is forced. Throws
  /// std::bad_alloc.
  Planned plan(const Job& job, int device, std::optional<Regime> preferred = {});
  /// Never that of another planner, unlike an address.
  std::uint64_t identity() const noexcept { return identity_; }
  /// Is one regime forced for all jobs that it can run?
  bool is_forced() const noexcept { return cache_.forced().has_value(); }
  /// The layout's descriptor on `device`; nullptr when there is no memory for it. Throws std::bad_alloc.
  std::shared_ptr<Descriptor> describe(const Layout& layout, int device) { return cache_.find(layout, device); }

 private:
  DescriptorCache& cache_;
  std::uint64_t identity_;
};

}  // namespace gapless::pack::gpu
