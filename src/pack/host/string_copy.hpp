// Copies into memory that caches of another CPU hold.
//
// An ordinary store first gets its line, and the other cache must give it up: where that cache is far (another chiplet,
// another socket) the lines are waited for nearly one by one. The string instruction of x86 writes whole lines and gets
// none (Intel's optimization manual, "REP MOVSB"), which takes a quarter of the time there.
#pragma once

#include <cstddef>

namespace gapless::pack::host {

/// Has this CPU fast string instructions? Asked once.
bool has_string_copy() noexcept;

/// Copies by the string instruction. Precondition: has_string_copy().
void string_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Copies by ordinary stores alone, as kernels that scatter do. For comparisons.
void ordinary_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace gapless::pack::host
