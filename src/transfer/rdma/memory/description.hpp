// A layout as bytes, for a peer that writes into it or reads from it: multi-write's sender has to know where the
// receiver's blocks are (Wu et al., 2003, 5.4.2).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "layout/layout.hpp"

namespace gapless::transfer::rdma {

/// Throws std::bad_alloc.
std::vector<std::byte> describe(const layout::Layout& layout);

/// The layout of the same function, or null: the bytes are not a description, or there is no memory. Whatever the bytes
/// are, lists are no longer than they, or than layout::recognition_budget.
layout::LayoutPointer understand(std::span<const std::byte> description) noexcept;

}  // namespace gapless::transfer::rdma
