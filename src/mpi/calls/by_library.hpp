// Packed bytes of a datatype that only the library understands: it unpacks what has been received as bytes, because it
// might have been a header.
#pragma once

#include <cstddef>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::by_library {

/// Unpacks `bytes` bytes, which may end within an element. MPI_SUCCESS, or the library's error, which no handler has
/// been told. Thread-safe.
int unpack(const std::byte* packed, std::size_t bytes, void* memory, MPI_Datatype datatype) noexcept;
/// Packs `count` of the datatype. Precondition: there is room for them.
int pack(const void* memory, MPI_Count count, MPI_Datatype datatype, std::byte* packed) noexcept;

}  // namespace gapless::mpi::by_library
