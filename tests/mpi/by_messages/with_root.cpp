// Broadcasts, gathers and scatters of GPU memory by messages, which the root alone wishes for.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "by_messages/equal_parts.hpp"
#include "by_messages/exchanges.hpp"
#include "support/ints.hpp"

namespace gapless::test {
namespace {

/// Calls with a root. Ranks that are no root pass what MPI_Gather and MPI_Scatter do not look at.
class WithRoot : public EqualParts {
 protected:
  /// Two buffers with room for a part of each rank.
  struct Buffers {
    Buffers(std::size_t room, bool is_on_gpu) : out(std::vector<int>(room), is_on_gpu), in(out.values(), is_on_gpu) {}
    Ints out, in;
  };

  std::size_t room() const { return 2 * static_cast<std::size_t>(length_) * ranks(); }
  std::vector<int> nothing() const { return std::vector<int>(room(), none); }
  Buffers& buffers(bool is_on_gpu) { return is_on_gpu ? on_gpu_ : on_host_; }
  bool is_root(int root) const { return rank() == root; }

  /// `call(round, root)` makes one call, each time at another root, and checks what the call has received.
  template <class Call>
  void expect_messages_of(Call call) {
    const std::uint64_t before = by_messages();
    for (int round = 0; round < rounds; ++round) call(round, round % size());
    expect_messages(before);
  }

  void broadcast(int round, int root, bool is_on_gpu) {
    const Parts parts(length_, (round + rank()) % 2 == 0);  // the ranks name one signature by different datatypes
    Ints& memory = buffers(is_on_gpu).out;
    std::vector<int> wanted = nothing();
    parts.fill(wanted, 0, first_of_sender(static_cast<std::size_t>(root), 0, round));
    memory.set(is_root(root) ? wanted : nothing());
    ASSERT_EQ(MPI_SUCCESS, MPI_Bcast(memory.data(), count_of(parts), type_of(parts), root, all_));
    ASSERT_TRUE(wanted == memory.values()) << "round " << round;
  }

  void gather(int round, int root, bool is_on_gpu) {
    const Parts sent(length_, round % 2 == 0), received(length_, round % 2 != 0);
    const auto own = static_cast<std::size_t>(rank()), to = static_cast<std::size_t>(root);
    const bool is_in_place = is_root(root) && round % 3 == 2;
    auto& [out, in] = buffers(is_on_gpu);
    std::vector<int> mine = nothing(), before = nothing(), wanted = nothing();
    sent.fill(mine, 0, first_of_pair(own, to, round));
    for (std::size_t k = 0; is_root(root) && k < ranks(); ++k) received.fill(wanted, k, first_of_pair(k, to, round));
    if (is_in_place) received.fill(before, own, first_of_pair(own, to, round));
    out.set(mine);
    in.set(before);
    const int code = is_root(root) ? MPI_Gather(is_in_place ? MPI_IN_PLACE : out.data(), count_of(sent), type_of(sent),
                                                in.data(), count_of(received), type_of(received), root, all_)
                                   : MPI_Gather(out.data(), count_of(sent), type_of(sent), MPI_IN_PLACE, -7,
                                                MPI_DATATYPE_NULL, root, all_);
    ASSERT_EQ(MPI_SUCCESS, code);
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }

  void scatter(int round, int root, bool is_on_gpu) {
    const Parts sent(length_, round % 2 == 0), received(length_, round % 2 != 0);
    const auto own = static_cast<std::size_t>(rank()), from = static_cast<std::size_t>(root);
    const bool is_in_place = is_root(root) && round % 3 == 2;
    auto& [out, in] = buffers(is_on_gpu);
    std::vector<int> of_all = nothing(), wanted = nothing();
    for (std::size_t k = 0; k < ranks(); ++k) sent.fill(of_all, k, first_of_pair(from, k, round));
    if (!is_in_place) received.fill(wanted, 0, first_of_pair(from, own, round));
    out.set(of_all);
    in.set(nothing());
    const int code =
        is_root(root) ? MPI_Scatter(out.data(), count_of(sent), type_of(sent), is_in_place ? MPI_IN_PLACE : in.data(),
                                    count_of(received), type_of(received), root, all_)
                      : MPI_Scatter(MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, in.data(), count_of(received),
                                    type_of(received), root, all_);
    ASSERT_EQ(MPI_SUCCESS, code);
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }

 private:
  Buffers on_gpu_{room(), true}, on_host_{room(), false};
};

TEST_P(WithRoot, EachRankBroadcasts) {
  expect_messages_of([this](int round, int root) { broadcast(round, root, true); });
}
TEST_P(WithRoot, EachRankGathers) {
  expect_messages_of([this](int round, int root) { gather(round, root, true); });
}
TEST_P(WithRoot, EachRankScatters) {
  expect_messages_of([this](int round, int root) { scatter(round, root, true); });
}

/// The others have host memory, where they map nothing: short parts go by the library's calls in the end.
TEST_P(WithRoot, WithGpuMemoryBroadcasts) {
  const std::uint64_t before = by_messages();
  for (int round = 0; round < rounds; ++round) broadcast(round, 0, is_root(0));
  expect_messages(before, rounds_before);
}
TEST_P(WithRoot, WithGpuMemoryScatters) {
  const std::uint64_t before = by_messages();
  for (int round = 0; round < rounds; ++round) scatter(round, 0, is_root(0));
  expect_messages(before, rounds_before);
}
TEST_P(WithRoot, WithGpuMemoryGathers) {
  const std::uint64_t before = by_messages();
  for (int round = 0; round < rounds; ++round) gather(round, 0, is_root(0));
  expect_messages(before);
}

/// The library's call takes packed bytes from many GPUs at once.
TEST_P(WithRoot, WithHostMemory) {
  const std::uint64_t before = by_messages();
  for (int round = 0; round < rounds; ++round) {
    broadcast(round, 0, !is_root(0));
    gather(round, 0, !is_root(0));
    scatter(round, 0, !is_root(0));
  }
  EXPECT_EQ(before, by_messages());
}

/// A root that is none, on all ranks.
TEST_P(WithRoot, OfNoRank) {
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  Ints memory(std::vector<int>(room()), true);
  for (const int root : {size(), -77}) {
    EXPECT_EQ(MPI_ERR_ROOT, error_class(MPI_Bcast(memory.data(), length_, MPI_INT, root, all_)));
  }
}

/// Of a root that makes a mistake, which nobody else hears of: the root gets its error, and waits for nobody.
TEST_P(WithRoot, AloneInAMistakeWaitsForNobody) {
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  Ints out(nothing(), true), in(nothing(), true);
  if (under_gapless() && is_root(0)) {
    const auto expect_type_error = [](int code) { EXPECT_EQ(MPI_ERR_TYPE, error_class(code)); };
    const MPI_Datatype none = MPI_DATATYPE_NULL;
    expect_type_error(MPI_Bcast(out.data(), length_, none, 0, all_));
    expect_type_error(MPI_Gather(out.data(), length_, MPI_INT, in.data(), length_, none, 0, all_));
#ifndef OPEN_MPI  // which does not look at the one datatype, and sends from nowhere what nobody receives
    expect_type_error(MPI_Scatter(out.data(), length_, none, in.data(), length_, MPI_INT, 0, all_));
    EXPECT_NE(MPI_SUCCESS, MPI_Bcast(nullptr, length_, MPI_INT, 0, all_));
#endif
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Between two groups all of this is the library's.
TEST_P(WithRoot, BetweenTwoGroups) {
  if (size() < 2) return;  // one process makes no two groups
  const int own_group = rank() % 2;
  MPI_Comm group, both;
  MPI_Comm_split(all_, own_group, rank(), &group);
  MPI_Intercomm_create(group, 0, all_, 1 - own_group, 0, &both);
  const int root = own_group != 0 ? 0 : rank() == 0 ? MPI_ROOT : MPI_PROC_NULL;
  int others = 0;
  MPI_Comm_remote_size(both, &others);
  Ints out(nothing(), true), in(nothing(), true);
  const std::uint64_t before = by_messages();
  for (int round = 0; round < 3; ++round) {
    const Parts parts(length_, false);
    std::vector<int> values = nothing();
    for (std::size_t k = 0; k < ranks(); ++k) parts.fill(values, k, first_of_pair(0, k, round));
    out.set(root == MPI_ROOT ? values : nothing());
    MPI_Bcast(out.data(), length_, MPI_INT, root, both);
    std::vector<int> wanted = nothing();
    parts.fill(wanted, 0, first_of_pair(0, 0, round));
    if (root == 0) {
      ASSERT_EQ(wanted, out.values());
    }
    out.set(values);
    in.set(nothing());
    MPI_Scatter(out.data(), length_, MPI_INT, in.data(), length_, MPI_INT, root, both);
    int place = 0;
    MPI_Comm_rank(group, &place);
    wanted = nothing();
    parts.fill(wanted, 0, first_of_pair(0, static_cast<std::size_t>(place), round));
    if (root == 0) {
      ASSERT_EQ(wanted, in.values());
    }
    values = nothing();
    parts.fill(values, 0, first_of_pair(static_cast<std::size_t>(place), 0, round));
    out.set(values);
    in.set(nothing());
    MPI_Gather(out.data(), length_, MPI_INT, in.data(), length_, MPI_INT, root, both);
    wanted = nothing();
    for (int k = 0; k < others; ++k)
      parts.fill(wanted, static_cast<std::size_t>(k), first_of_pair(static_cast<std::size_t>(k), 0, round));
    if (root == MPI_ROOT) {
      ASSERT_EQ(wanted, in.values());
    }
  }
  EXPECT_EQ(before, by_messages());
  MPI_Comm_free(&both);
  MPI_Comm_free(&group);
}

INSTANTIATE_TEST_SUITE_P(Lengths, WithRoot, testing::Values(16, 1024, 30'000));

}  // namespace
}  // namespace gapless::test
