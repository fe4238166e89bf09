// What tests of exchanges with equal parts share: parts of so many ints, and the ranks that exchange them.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "by_messages/exchanges.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"

namespace gapless::test {

inline constexpr int rounds = rounds_before + 2;

/// Parts of so many ints, with gaps, every second int, or without.
struct Parts {
  Parts(int length, bool has_gaps) : length(static_cast<std::size_t>(length)), step(has_gaps ? 2 : 1) {}

  std::size_t ints() const { return length * step; }
  void fill(std::vector<int>& values, std::size_t part, int first) const {
    for (std::size_t i = 0; i < length; ++i) values[part * ints() + i * step] = first + static_cast<int>(i);
  }

  std::size_t length, step;
};

/// Exchanges among so many processes, of which one of more than two has host memory, in parts of `length` ints. Every
/// second one sends parts with gaps, and the others receive such parts.
class EqualParts : public testing::TestWithParam<int> {
 protected:
  EqualParts() {
    MPI_Comm_dup(MPI_COMM_WORLD, &all_);
    MPI_Datatype every_other = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(Owned(strided(length_, 1, 2)), 0, static_cast<MPI_Aint>(2 * sizeof(int)) * length_,
                            &every_other);
    MPI_Type_commit(&every_other);
    gaps_ = every_other;
  }
  ~EqualParts() override {
    MPI_Type_free(&gaps_);
    MPI_Comm_free(&all_);
  }

  static std::size_t ranks() { return static_cast<std::size_t>(size()); }
  /// A graph in which everybody is a neighbour of everybody.
  MPI_Comm graph_of_all() const {
    std::vector<int> everybody(ranks());
    std::iota(everybody.begin(), everybody.end(), 0);
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(all_, size(), everybody.data(), MPI_UNWEIGHTED, size(), everybody.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    return graph;
  }
  int count_of(const Parts& parts) const { return parts.step == 2 ? 1 : length_; }
  MPI_Datatype type_of(const Parts& parts) const { return parts.step == 2 ? gaps_ : MPI_INT; }

  /// What rank `from` has for rank `to`.
  using First = int (*)(std::size_t from, std::size_t to, int round);
  /// `exchange(out, parts sent, in, parts received)` sends `sent_parts` parts, and receives one from each rank.
  template <class Exchange>
  void expect_right(std::size_t sent_parts, First first, Exchange exchange) {
    const bool is_on_gpu = rank() != 1 || size() == 2;
    const std::size_t room = 2 * static_cast<std::size_t>(length_) * ranks();
    Ints out(std::vector<int>(room), is_on_gpu), in(std::vector<int>(room), is_on_gpu);
    const std::uint64_t before = by_messages();
    const auto own = static_cast<std::size_t>(rank());
    for (int round = 0; round < rounds; ++round) {
      const Parts sent(length_, round % 2 == 0), received(length_, round % 2 != 0);
      std::vector<int> values(room, none), wanted(room, none);
      for (std::size_t k = 0; k < sent_parts; ++k) sent.fill(values, k, first(own, k, round));
      for (std::size_t k = 0; k < ranks(); ++k) received.fill(wanted, k, first(k, own, round));
      out.set(values);
      in.set(std::vector<int>(room, none));
      ASSERT_EQ(MPI_SUCCESS, exchange(out.data(), sent, in.data(), received));
      ASSERT_TRUE(wanted == in.values()) << "round " << round;
    }
    expect_messages(before);
  }
  /// So many calls of parts that are long enough have gone by messages.
  void expect_messages(std::uint64_t before, int calls = rounds) const {
    if (may_be_combined()) {
      EXPECT_EQ(before + (length_ < 1024 ? 0 : calls), by_messages());
    }
  }

  static int first_of_pair(std::size_t from, std::size_t to, int round) {
    return first_of(static_cast<int>(from), static_cast<int>(to), 0, round);
  }
  static int first_of_sender(std::size_t from, std::size_t, int round) {
    return first_of(static_cast<int>(from), 0, 0, round);
  }

  const int length_ = GetParam();
  MPI_Comm all_ = MPI_COMM_NULL;
  MPI_Datatype gaps_ = MPI_DATATYPE_NULL;
};

}  // namespace gapless::test
