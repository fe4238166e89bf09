// Random pairs of sides, of one signature or of signatures that do not fit.
#pragma once

#include "sides/buffer.hpp"
#include "support/random.hpp"

namespace gapless::test::differential {

struct Pair {
  Side out;
  Side in;
};

/// How long what is sent is, against the receive. The last two are of any types whatever.
enum class Fit { equal, shorter, longer, inside_element, longer_of_other_type, not_longer_of_other_type };

/// `in` never overlaps. With Fit::equal or shorter the pair is right.
Pair random_pair(Random& random, Fit fit);
/// One side that may be received into.
Side random_receiving_side(Random& random);
/// `bytes` bytes as MPI_PACKED or MPI_BYTE.
Side plain_bytes(std::size_t bytes, MPI_Datatype type);
}  // namespace gapless::test::differential
