// A layout as bytes, for a peer that writes into the layout's blocks: multi-write's sender has to know where the
// receiver's blocks are (Wu et al., 2003, 5.4.2).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "layout/layout.hpp"

namespace gapless::transfer::rdma {

/// Throws std::bad_alloc.
std::vector<std::byte> describe(const layout::Layout& layout);

/// The described layout. Null where the bytes are not a description, or there is no memory. No bytes, right or wrong,
/// lead to lists longer than the bytes themselves or than layout::recognition_budget.
layout::LayoutPointer understand(std::span<const std::byte> description) noexcept;

}  // namespace gapless::transfer::rdma
