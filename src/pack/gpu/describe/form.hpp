// The form in which kernels get a layout: irregular ones become one flat list.
//
// What a layout is built of matters to the host, which walks it; a kernel finds each word by itself, and every level
// that it has to walk costs it a read of GPU memory. So short irregular cores become a table of equal blocks, which the
// nest regime indexes, and longer ones a list of runs.
#pragma once

#include "layout/layout.hpp"

namespace gapless::pack::gpu {

/// Longest table that a short core becomes: it stays in the caches.
inline constexpr layout::Offset table_entries_limit = layout::Offset{1} << 16;
/// Longest list of runs that is made of a layout that is none.
inline constexpr layout::Offset listed_runs_limit = layout::Offset{1} << 22;

/// nullptr if kernels get the layout as it is. Postcondition: the same function, with the same modes. The result is not
/// canonical. always_list: never a table. Precondition: not empty. Throws std::bad_alloc.
layout::LayoutPointer kernel_form(const layout::Layout& layout, bool always_list = false);

}  // namespace gapless::pack::gpu
