// A box of ints with a halo around it, which is exchanged with the ranks before and behind.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "support/environment.hpp"

namespace gapless::test {

/// The faces, edges and corners of a box of ints, from inside to its halo: to the rank behind where the first dimension
/// changes, as 18 of 26 parts do, else to itself. Two of the parts are rows, of which nothing is strided.
class Halo {
 public:
  static constexpr int size = 16, full = size + 2, parts = 26, nothing = -1;

  Halo() : behind_((rank() + 1) % test::size()), before_((rank() + test::size() - 1) % test::size()) {
    for (int direction = 0; direction < 27; ++direction) {
      const int d[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
      if (d[0] == 0 && d[1] == 0 && d[2] == 0) continue;
      const int full_box[3] = {full, full, full};
      int length[3], give[3], take[3];
      for (int i = 0; i < 3; ++i) {
        length[i] = d[i] != 0 ? 1 : size;
        give[i] = d[i] > 0 ? size : 1;
        take[i] = d[i] < 0 ? size + 1 : d[i] > 0 ? 0 : 1;
      }
      MPI_Datatype type;
      for (const bool sends : {true, false}) {
        MPI_Type_create_subarray(3, full_box, length, sends ? give : take, MPI_ORDER_C, MPI_INT, &type);
        MPI_Type_commit(&type);
        (sends ? sent : received).push_back(type);
      }
      destinations.push_back(d[0] != 0 ? behind_ : rank());
      sources.push_back(d[0] != 0 ? before_ : rank());
    }
  }
  ~Halo() {
    for (auto* const types : {&sent, &received})
      for (MPI_Datatype& type : *types) MPI_Type_free(&type);
  }
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;

  static int value(int of_rank, int x, int y, int z, int round) {
    return (((of_rank * full + x) * full + y) * full + z) * 16 + round;
  }
  static std::size_t at(int x, int y, int z) { return static_cast<std::size_t>((x * full + y) * full + z); }
  static bool is_inside(int i) { return i >= 1 && i <= size; }

  std::vector<int> before_exchange(int round) const {
    std::vector<int> values(full * full * full, nothing);
    each([&](int x, int y, int z) {
      if (is_inside(x) && is_inside(y) && is_inside(z)) values[at(x, y, z)] = value(rank(), x, y, z, round);
    });
    return values;
  }
  /// Every point of the halo has come from the opposite side of the box, of this rank or of the one before.
  std::vector<int> after_exchange(int round) const {
    std::vector<int> values(full * full * full, nothing);
    const auto opposite = [](int i) { return i == 0 ? size : i == size + 1 ? 1 : i; };
    each([&](int x, int y, int z) {
      values[at(x, y, z)] = value(is_inside(x) ? rank() : before_, opposite(x), opposite(y), opposite(z), round);
    });
    return values;
  }

  std::vector<int> destinations, sources;
  std::vector<MPI_Datatype> sent, received;

 private:
  template <class Visit>
  static void each(Visit visit) {
    for (int x = 0; x < full; ++x)
      for (int y = 0; y < full; ++y)
        for (int z = 0; z < full; ++z) visit(x, y, z);
  }

  int behind_, before_;
};

}  // namespace gapless::test
