// Packed bytes of a datatype that only the library understands. A message that might be a header is received as bytes,
// and the library unpacks the bytes.
#pragma once

#include <cstddef>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::by_library {

/// Unpacks `bytes` bytes, which may end within an element. MPI_SUCCESS, or the library's error, which has not been
/// raised. Thread-safe.
int unpack(const std::byte* packed, std::size_t bytes, void* memory, MPI_Datatype datatype) noexcept;
/// Packs `count` elements of the datatype. Precondition: `packed` has room for them.
int pack(const void* memory, MPI_Count count, MPI_Datatype datatype, std::byte* packed) noexcept;

}  // namespace gapless::mpi::by_library
