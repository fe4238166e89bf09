// What a guard asks of a call's memory: does a GPU have it, is it better left to the library, is it like that of an
// earlier call?
#pragma once

#include <cstdint>
#include <span>

#include "mpi/calls/staged/memory_argument.hpp"

namespace gapless::mpi {

/// The GPU of the memory that a call touches, or -1.
int gpu_of_call(const CallFacts& call, std::span<const MemoryArgument> arguments) noexcept;

/// Is nothing of the argument worth packing? Host memory is judged by the most that its parts could save together.
/// `on_gpu`: the call touches GPU memory, for which that says nothing. One look-up for each datatype.
bool is_left_to_library(const CallFacts& call, const MemoryArgument& argument, bool on_gpu) noexcept;

/// Is one of what the argument sends longer than its extent, as a transposed matrix is that is made of its columns?
bool is_longer_than_extent(const CallFacts& call, const MemoryArgument& argument) noexcept;

/// Of an exchange of parts that have a datatype each, with enough noncontiguous bytes in host memory that what it takes
/// is worth comparing: tells apart exchanges that are not alike. Else 0.
std::uint64_t trial_key(const CallFacts& call, std::span<const MemoryArgument> arguments) noexcept;

}  // namespace gapless::mpi
