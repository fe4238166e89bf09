// A layout as one block of bytes that a GPU can walk: no pointers, so it is copied once and used anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/layout.hpp"

namespace gapless::pack::gpu {

/// Numbers or-ed together: trailing zeros bound the word a kernel may use.
struct AlignmentBits {
  std::uint64_t all = 0;     ///< lengths, strides and offsets
  std::uint64_t places = 0;  ///< strides and offsets
};

struct Serialised {
  std::vector<std::byte> bytes;  ///< the root TreeNode is at position 0
  AlignmentBits alignment_bits;  ///< without the root's base
};

/// Postcondition: Tree::place over the result equals layout::offset_of for every packed byte. Precondition: not empty.
Serialised serialise(const layout::Layout& layout);

}  // namespace gapless::pack::gpu
