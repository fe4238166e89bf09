// From a job to the kernel that runs it: which regime, which word, which index width.
//
// What depends on the layout alone (a Shape) is worked out once a thread and remembered; what depends on pointers and
// range (a Launch) is a few dozen instructions a job.
#pragma once

#include <memory>
#include <variant>

#include "pack/cuda/descriptor_cache.hpp"
#include "pack/cuda/index_logic.hpp"
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

struct ContiguousCopy {
  std::uintptr_t memory;
  std::uintptr_t packed;
  std::uint64_t bytes;
  bool unpack;
};

template <class Locator>
struct WordCopy {
  Range range;
  Locator locator;
  int word_shift;

  std::uint64_t tiles() const noexcept {
    const std::uint64_t tiles = (range.word_count + words_per_tile - 1) / words_per_tile;
    return tiles == 0 ? 1 : tiles;
  }
};

/// One run after the other, for unpacking into a layout that names a byte twice: the later packed byte must win.
struct OrderedCopy {
  Range range;
  Tree tree;
  std::uint64_t bytes;
};

using Launch = std::variant<std::monostate, ContiguousCopy, WordCopy<Nest<std::uint32_t>>,
                            WordCopy<Nest<std::uint64_t>>, WordCopy<Segments>, WordCopy<Tree>, OrderedCopy>;

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
