// More packed bytes than an int counts: large chunks and a remainder as one struct, which any count-limited call can
// send.
#include "mpi/wire_type.hpp"

#include "mpi/native.hpp"
#include "mpi/type_cache.hpp"

namespace gapless::mpi {

bool may_be_cut(MPI_Datatype datatype, std::size_t bytes) noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
  static_cast<void>(datatype);
  static_cast<void>(bytes);
  return true;
#else
  // MPICH 5.0.2's pieces hold 8168 bytes; elements at multiples of their size, at most 8, fit them.
  constexpr std::size_t shortest_piece = 4096;
  return bytes <= shortest_piece || type_cache::find(datatype)->has_aligned_elements;
#endif
}

bool make_large_type(std::size_t bytes, MPI_Datatype& type) noexcept {
  constexpr int chunk_bytes = 1 << 30;
  MPI_Datatype chunk;
  if (native.Type_contiguous(chunk_bytes, MPI_PACKED, &chunk) != MPI_SUCCESS) return false;
  int lengths[2] = {static_cast<int>(bytes / chunk_bytes), static_cast<int>(bytes % chunk_bytes)};
  MPI_Aint displacements[2] = {0, static_cast<MPI_Aint>(lengths[0]) * chunk_bytes};
  MPI_Datatype types[2] = {chunk, MPI_PACKED};
  const bool made = native.Type_create_struct(2, lengths, displacements, types, &type) == MPI_SUCCESS;
  native.Type_free(&chunk);
  if (!made) return false;
  if (native.Type_commit(&type) == MPI_SUCCESS) return true;
  native.Type_free(&type);
  return false;
}

void free_large_type(MPI_Datatype& type) noexcept { native.Type_free(&type); }

}  // namespace gapless::mpi
