// From a job to the kernel that runs it: which regime, which word, which index width.
//
// What depends on the layout alone (a Shape) is worked out once a thread and remembered; what depends on pointers and
// range (a Launch) is a few dozen instructions a job.
#pragma once

#include <memory>
#include <variant>

#include "pack/cuda/descriptor_cache.hpp"
#include "pack/cuda/regimes/nest.hpp"
#include "pack/cuda/regimes/ordered.hpp"
#include "pack/cuda/regimes/segments.hpp"
#include "pack/job.hpp"

namespace gapless::pack::cuda {

enum class Regime : std::uint8_t { contiguous, nest, segments, tree };

/// Repetitions of a layout as kernels see it.
struct Shape {
  Regime regime = Regime::contiguous;
  Offset base = 0;
  Offset length = 0;  ///< contiguous, nest: bytes in a row
  int mode_count = 0;
  int table_mode = -1;  ///< nest: which mode takes its offsets from the descriptor's table
  Mode modes[max_levels];
  Offset repetition_size = 0;  ///< packed bytes of one repetition of the layout
  Offset extent = 0;
  std::uint64_t alignment_bits = 0;
  bool injective = true;
};

/// Postcondition: the shape describes the same function as `outer` repetitions of `layout`. Shape::injective is not
/// set.
Shape shape_of(const Layout& layout, Mode outer, std::uint64_t descriptor_alignment_bits);

/// False where kernel parameters alone describe the layout.
bool needs_descriptor(const Layout& layout);

/// Left to the copy engine.
struct ContiguousWork {
  std::uintptr_t memory;
  std::uintptr_t packed;
  std::uint64_t bytes;
  bool unpack;
};

/// Each but the first two has tiles(), word_shift(), a type Shared and run_tile<Word>(work, tile, block, shared).
using Launch = std::variant<std::monostate, ContiguousWork, NestWork<std::uint32_t>, NestWork<std::uint64_t>,
                            SegmentsWork, TreeWork, OrderedWork>;

/// monostate for an empty range. `descriptor` may be null where needs_descriptor is false and the shape is injective.
Launch prepare(const Job& job, const Shape& shape, const Descriptor* descriptor) noexcept;

/// Shapes and descriptors of the layouts a thread used last, so that a repeated job costs no lock and no allocation.
class Planner {
 public:
  explicit Planner(DescriptorCache& cache);

  struct Planned {
    Launch launch;
    std::shared_ptr<Descriptor> descriptor;  ///< must live until the kernel is done
    bool out_of_memory = false;
  };
  /// For the calling thread. Throws std::bad_alloc.
  Planned plan(const Job& job, int device);

 private:
  DescriptorCache& cache_;
  std::uint64_t identity_;  ///< never given to another planner, unlike an address
};

}  // namespace gapless::pack::cuda
