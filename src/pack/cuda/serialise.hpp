// A layout as one block of bytes that a GPU can walk: no pointers, so it is copied once and used anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/layout.hpp"

namespace gapless::pack::cuda {

struct Serialised {
  std::vector<std::byte> bytes;  ///< the root TreeNode is at position 0
  /// All lengths, strides and offsets but the root's base, or-ed: its trailing zeros bound the word a kernel may use.
  std::uint64_t alignment_bits = 0;
};

/// Postcondition: Tree::place over the result equals layout::offset_of for every packed byte. Precondition: not empty.
Serialised serialise(const layout::Layout& layout);

}  // namespace gapless::pack::cuda
