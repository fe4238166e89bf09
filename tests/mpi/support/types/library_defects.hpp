// Random types now and then meet defects of the MPI library itself; those are left out of tests of gapless.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "support/environment.hpp"
#include "support/types/memory.hpp"
#include "support/types/type.hpp"

namespace gapless::test {

/// False where Open MPI 5.0.11 takes vector(n, 1, -1) for contiguous, with a lower bound of 0: such a type means
/// something else from the start, and gapless leaves it to the library.
inline bool library_packs_by_type_map(const Type& type, int count) {
  Random random(1);
  const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), count);
  Memory memory(offsets, random);
  std::vector<std::byte> packed(offsets.size() + 1);
  int position = 0;
  GAPLESS_TEST_NATIVE(Pack)
  (memory.base(), count, type.handle(), packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_WORLD);
  packed.resize(offsets.size());
  return packed == memory.packed(offsets);
}

}  // namespace gapless::test
