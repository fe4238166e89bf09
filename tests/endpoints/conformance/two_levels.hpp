// Blocking collectives with what every rank must get told by a formula, so that they can be checked for any number of
// processes and endpoints. Each function returns how many results are wrong.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {

/// Lengths around those at which collectives change their way: inside a cache line, copied, in slices.
inline const std::vector<int>& lengths() {
  static const std::vector<int> all{1, 4, 5, 12, 13, 700, 2048, 2049, 20011};
  return all;
}

inline unsigned element(int of_rank, std::size_t i) {
  return 2654435761U * static_cast<unsigned>(of_rank + 1) + 7U * static_cast<unsigned>(i);
}

inline std::vector<unsigned> elements_of(int of_rank, int count) {
  std::vector<unsigned> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = element(of_rank, i);
  return all;
}

/// The sum over all ranks, in wrapping numbers.
inline std::vector<unsigned> sums(int ranks, int count) {
  std::vector<unsigned> all(static_cast<std::size_t>(count), 0);
  for (int of_rank = 0; of_rank < ranks; ++of_rank) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += element(of_rank, i);
  }
  return all;
}

inline int wrong_reductions(MPI_Comm comm, int count) {
  const int me = rank(comm), all = size(comm);
  const std::vector<unsigned> mine = elements_of(me, count), expected = sums(all, count);
  const auto unchanged = std::vector<unsigned>(mine.size(), 1U);
  int wrong = 0;
  std::vector<unsigned> result = unchanged;
  wrong += MPI_Allreduce(mine.data(), result.data(), count, MPI_UNSIGNED, MPI_SUM, comm) != MPI_SUCCESS;
  wrong += result != expected;
  result = mine;
  wrong += MPI_Allreduce(MPI_IN_PLACE, result.data(), count, MPI_UNSIGNED, MPI_SUM, comm) != MPI_SUCCESS;
  wrong += result != expected;
  for (int root = 0; root < all; ++root) {
    result = unchanged;
    MPI_Reduce(mine.data(), me == root ? result.data() : nullptr, count, MPI_UNSIGNED, MPI_SUM, root, comm);
    wrong += result != (me == root ? expected : unchanged);
    result = mine;
    MPI_Reduce(me == root ? MPI_IN_PLACE : result.data(), result.data(), count, MPI_UNSIGNED, MPI_SUM, root, comm);
    wrong += result != (me == root ? expected : mine);
  }
  std::vector<int> pairs(2 * mine.size()), least(pairs.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    pairs[2 * i] = -me;
    pairs[2 * i + 1] = me;
  }
  MPI_Allreduce(pairs.data(), least.data(), count, MPI_2INT, MPI_MINLOC, comm);
  for (std::size_t i = 0; i < mine.size(); ++i) wrong += least[2 * i] != 1 - all || least[2 * i + 1] != all - 1;
  return wrong;
}

inline int wrong_broadcasts(MPI_Comm comm, int count) {
  const int me = rank(comm), all = size(comm);
  int wrong = 0;
  for (int root = 0; root < all; ++root) {
    std::vector<unsigned> data =
        me == root ? elements_of(root, count) : std::vector<unsigned>(static_cast<std::size_t>(count));
    wrong += MPI_Bcast(data.data(), count, MPI_UNSIGNED, root, comm) != MPI_SUCCESS;
    wrong += data != elements_of(root, count);
    // Every second element, and at the root all elements together.
    const Owned sparse(strided(count, 1, 2));
    std::vector<unsigned> gaps(static_cast<std::size_t>(2 * count), 5U);
    if (me == root) {
      MPI_Bcast(data.data(), count, MPI_UNSIGNED, root, comm);
      continue;
    }
    MPI_Bcast(gaps.data(), 1, sparse, root, comm);
    for (std::size_t i = 0; i < data.size(); ++i) wrong += gaps[2 * i] != data[i] || gaps[2 * i + 1] != 5U;
  }
  return wrong;
}

inline int wrong_exchanges(MPI_Comm comm, int count) {
  const int me = rank(comm), all = size(comm);
  const auto length = static_cast<std::size_t>(count);
  const std::vector<unsigned> mine = elements_of(me, count);
  std::vector<unsigned> expected, result(length * static_cast<std::size_t>(all));
  for (int other = 0; other < all; ++other) {
    const std::vector<unsigned> part = elements_of(other, count);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  int wrong = MPI_Allgather(mine.data(), count, MPI_UNSIGNED, result.data(), count, MPI_UNSIGNED, comm) != MPI_SUCCESS;
  wrong += result != expected;
  std::fill(result.begin(), result.end(), 3U);
  std::copy(mine.begin(), mine.end(), result.begin() + static_cast<std::ptrdiff_t>(length) * me);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, result.data(), count, MPI_UNSIGNED, comm);
  wrong += result != expected;
  // Rank i gets from each what that one has for it: elements (me, other).
  std::vector<unsigned> out, in(result.size());
  expected.clear();
  for (int other = 0; other < all; ++other) {
    for (std::size_t i = 0; i < length; ++i) {
      out.push_back(element(me + 1000 * other, i));
      expected.push_back(element(other + 1000 * me, i));
    }
  }
  wrong += MPI_Alltoall(out.data(), count, MPI_UNSIGNED, in.data(), count, MPI_UNSIGNED, comm) != MPI_SUCCESS;
  wrong += in != expected;
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), count, MPI_UNSIGNED, comm);
  wrong += out != expected;
  return wrong;
}

/// Messages between collectives are those of the program still, and go on while a rank waits in a collective: those of
/// another communicator of the same thread, too.
inline int wrong_orders(MPI_Comm comm) {
  const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
  MPI_Comm other;
  MPI_Comm_dup(comm, &other);
  int wrong = 0;
  for (int round = 0; round < 20; ++round) {
    std::array<MPI_Request, 2> requests;
    std::array<int, 2> got{-1, -1};
    int last = round % all, sum = 0;
    const int sent = 100 * me + round;
    MPI_Irecv(&got[0], 1, MPI_INT, from, MPI_ANY_TAG, comm, &requests[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, round, other, &requests[1]);
    if (me % 2 == round % 2) MPI_Ssend(&sent, 1, MPI_INT, to, round, other);
    MPI_Barrier(comm);
    if (me % 2 != round % 2) MPI_Ssend(&sent, 1, MPI_INT, to, round, other);
    MPI_Ssend(&sent, 1, MPI_INT, to, round, comm);
    MPI_Bcast(&last, 1, MPI_INT, last, comm);
    MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    wrong += got[0] != 100 * from + round || got[1] != got[0] || last != round % all || sum != all * round;
  }
  MPI_Comm_free(&other);
  return wrong;
}

inline int wrong_in_two_levels(MPI_Comm comm) {
  int wrong = wrong_orders(comm);
  for (const int count : lengths()) {
    wrong += wrong_reductions(comm, count);
    wrong += wrong_broadcasts(comm, count);
    if (count <= 2049) wrong += wrong_exchanges(comm, count);
  }
  return wrong;
}

}  // namespace gapless::test
