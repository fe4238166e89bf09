// Exchanges of GPU memory by messages in which a process has equal parts for all others, or one part for all of them.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "device/exchanges.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

constexpr int rounds = rounds_before + 2;

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
  void expect_messages(std::uint64_t before) const {
    if (may_be_combined()) {
      EXPECT_EQ(before + (length_ < 1024 ? 0 : rounds), by_messages());
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

TEST_P(EqualParts, OfAlltoall) {
  expect_right(ranks(), first_of_pair, [this](void* out, const Parts& sent, void* in, const Parts& received) {
    return MPI_Alltoall(out, count_of(sent), type_of(sent), in, count_of(received), type_of(received), all_);
  });
}

TEST_P(EqualParts, OfAllgather) {
  expect_right(1, first_of_sender, [this](void* out, const Parts& sent, void* in, const Parts& received) {
    return MPI_Allgather(out, count_of(sent), type_of(sent), in, count_of(received), type_of(received), all_);
  });
}

/// In the order of the ranks, though they are told their places.
TEST_P(EqualParts, OfAllgatherv) {
  expect_right(1, first_of_sender, [this](void* out, const Parts& sent, void* in, const Parts& received) {
    std::vector<int> counts(ranks(), count_of(received)), places(ranks());
    for (std::size_t k = 0; k < ranks(); ++k) places[k] = static_cast<int>(k) * count_of(received);
    return MPI_Allgatherv(out, count_of(sent), type_of(sent), in, counts.data(), places.data(), type_of(received),
                          all_);
  });
}

TEST_P(EqualParts, OfEveryNeighbour) {
  std::vector<int> everybody(ranks());
  std::iota(everybody.begin(), everybody.end(), 0);
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(all_, size(), everybody.data(), MPI_UNWEIGHTED, size(), everybody.data(),
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  expect_right(ranks(), first_of_pair, [&](void* out, const Parts& sent, void* in, const Parts& received) {
    return MPI_Neighbor_alltoall(out, count_of(sent), type_of(sent), in, count_of(received), type_of(received), graph);
  });
  MPI_Comm_free(&graph);
}

TEST_P(EqualParts, InPlaceOfAllgather) {
  const Parts parts(length_, true);
  Ints in(std::vector<int>(parts.ints() * ranks()), true);
  const auto own = static_cast<std::size_t>(rank());
  const std::uint64_t before = by_messages();
  const std::vector<int> counts(ranks(), 1);
  std::vector<int> places(ranks());
  std::iota(places.begin(), places.end(), 0);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> mine(parts.ints() * ranks(), none);
    parts.fill(mine, own, first_of_sender(own, 0, round));
    in.set(mine);
    ASSERT_EQ(MPI_SUCCESS, round % 2 == 0 ? MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), 1, gaps_, all_)
                                          : MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in.data(), counts.data(),
                                                           places.data(), gaps_, all_));
    std::vector<int> wanted(mine.size(), none);
    for (std::size_t k = 0; k < ranks(); ++k) parts.fill(wanted, k, first_of_sender(k, 0, round));
    ASSERT_TRUE(wanted == in.values()) << "round " << round;
  }
  if (length_ >= 1024) expect_messages(before);
}

/// All parts, sent and received, lie behind one address, at places that the datatypes say.
TEST_P(EqualParts, BehindOneAddress) {
  const auto part = static_cast<std::size_t>(length_);
  std::vector<MPI_Datatype> sent(ranks()), received(ranks());
  for (std::size_t k = 0; k < ranks(); ++k) {
    const int places[] = {static_cast<int>(2 * k * part), static_cast<int>((2 * k + 1) * part)};
    MPI_Type_create_indexed_block(1, length_, &places[0], MPI_INT, &sent[k]);
    MPI_Type_create_indexed_block(1, length_, &places[1], MPI_INT, &received[k]);
    MPI_Type_commit(&sent[k]);
    MPI_Type_commit(&received[k]);
  }
  const std::vector<int> ones(ranks(), 1), nowhere(ranks(), 0);
  const auto own = static_cast<std::size_t>(rank());
  Ints memory(std::vector<int>(2 * part * ranks()), true);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> values(2 * part * ranks(), none);
    const Parts parts(length_, false);
    for (std::size_t k = 0; k < ranks(); ++k) parts.fill(values, 2 * k, first_of_pair(own, k, round));
    memory.set(values);
    ASSERT_EQ(MPI_SUCCESS, MPI_Alltoallw(memory.data(), ones.data(), nowhere.data(), sent.data(), memory.data(),
                                         ones.data(), nowhere.data(), received.data(), all_));
    for (std::size_t k = 0; k < ranks(); ++k) parts.fill(values, 2 * k + 1, first_of_pair(k, own, round));
    ASSERT_TRUE(values == memory.values()) << "round " << round;
  }
  for (std::size_t k = 0; k < ranks(); ++k) {
    MPI_Type_free(&sent[k]);
    MPI_Type_free(&received[k]);
  }
}

/// Every process names a datatype that is none, or not committed, at either side: an error of the communicator's.
TEST_P(EqualParts, OfNoDatatype) {
  if (!under_gapless() || library_reads_gpu()) GTEST_SKIP() << "Open MPI takes datatypes that are not committed";
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  const std::size_t room = static_cast<std::size_t>(length_) * ranks();
  Ints out(std::vector<int>(room), true), in(std::vector<int>(room), true);
  const std::vector<int> counts(ranks(), length_);
  std::vector<int> places(ranks());
  for (std::size_t k = 0; k < ranks(); ++k) places[k] = static_cast<int>(k) * length_;
  const int *n = counts.data(), *at = places.data();
  void *const s = out.data(), *const r = in.data();
  const auto expect_type_error = [](const char* name, int code) { EXPECT_EQ(MPI_ERR_TYPE, error_class(code)) << name; };
  MPI_Datatype not_committed;
  MPI_Type_contiguous(1, MPI_INT, &not_committed);
  for (const MPI_Datatype wrong : {MPI_DATATYPE_NULL, not_committed}) {
    for (const bool is_sent : {true, false}) {
      const MPI_Datatype sent = is_sent ? wrong : MPI_INT, received = is_sent ? MPI_INT : wrong;
      expect_type_error("Alltoall", MPI_Alltoall(s, length_, sent, r, length_, received, all_));
      expect_type_error("Alltoallv", MPI_Alltoallv(s, n, at, sent, r, n, at, received, all_));
      expect_type_error("Allgather", MPI_Allgather(s, length_, sent, r, length_, received, all_));
      expect_type_error("Allgatherv", MPI_Allgatherv(s, length_, sent, r, n, at, received, all_));
      MPI_Request request;
      expect_type_error("Iallgather", MPI_Iallgather(s, length_, sent, r, length_, received, all_, &request));
    }
    expect_type_error("Bcast", MPI_Bcast(s, length_, wrong, 0, all_));
    expect_type_error("Allgather", MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, r, length_, wrong, all_));
    expect_type_error("Allgatherv", MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, r, n, at, wrong, all_));
  }
  MPI_Type_free(&not_committed);
}

INSTANTIATE_TEST_SUITE_P(Lengths, EqualParts, testing::Values(16, 1024, 30'000));

}  // namespace
}  // namespace gapless::test
