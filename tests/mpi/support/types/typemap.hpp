// The type map of the MPI standard, taken literally: every basic element with its displacement, in order.
//
// This is what the tests believe. It shares nothing with the library under test, and is as slow and as plain as it
// looks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gapless::test {

/// One basic element: `size` bytes at `displacement`, of the predefined datatype `basic`.
struct Element {
  MPI_Aint displacement;
  std::size_t size;
  MPI_Datatype basic;
};

struct TypeMap {
  std::vector<Element> elements;
  MPI_Aint lower_bound = 0;
  MPI_Aint extent = 0;

  std::size_t size() const;

  /// Appends `child`, displaced.
  void place(const TypeMap& child, MPI_Aint displacement);
};

/// Every byte the packed form of `count` repetitions consists of, as offsets from the buffer's address, in packed
/// order.
std::vector<MPI_Aint> packed_offsets(const TypeMap& map, int count);

/// Does any byte occur twice? Such data may be sent, not received.
bool overlaps(std::span<const MPI_Aint> offsets);

}  // namespace gapless::test
