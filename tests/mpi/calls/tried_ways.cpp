// Exchanges in host memory whose way the run itself decides: they are tried packed and left to the library, and right
// whichever way they go, at both ends in turn.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "support/completing.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr int rounds = 400, tag = 5;
constexpr int rows = 2048, row = 3, gap = 5;  // ints; so long that packing or slots pay with every library
constexpr std::size_t span = static_cast<std::size_t>(rows) * (row + gap);

/// In memory that held -1, what the partner has counted from `first` on.
void expect_arrived(const std::vector<int>& theirs, int first) {
  const std::vector<int> sent = counting(theirs.size(), first);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const bool is_data = i % (row + gap) < row;
    ASSERT_EQ(is_data ? sent[i] : -1, theirs[i]) << "int " << i << " of what counts from " << first;
  }
}

/// Some rounds are packed, and some are left to the library, as the run finds out what is sooner.
class TriedWays : public testing::Test {
 protected:
  /// Nothing is known yet of messages of a communicator whose handle no other has had.
  static MPI_Comm new_communicator() {
    EXPECT_EQ(MPI_SUCCESS, MPI_Comm_dup(MPI_COMM_WORLD, &communicators_.emplace_back()));
    return communicators_.back();
  }
  static void TearDownTestSuite() {
    for (MPI_Comm& communicator : communicators_) MPI_Comm_free(&communicator);
    communicators_.clear();
  }

  /// `parts`: that gapless counts of a round, sent or received.
  template <class Exchange>
  void run(int messages, int parts, Exchange exchange) {
    const int partner = size() - 1 - rank();
    const Owned type(strided(rows, row, row + gap));
    // Of what is sent and received. Fewer count after the first of the others: a datatype's first uses are left.
    const std::uint64_t all = 2 * static_cast<std::uint64_t>(parts);
    int packed_rounds = 0, left_rounds = 0;
    for (int round = 0; round < rounds; ++round) {
      const std::vector<int> mine = counting(span * static_cast<std::size_t>(messages), 100000 * rank() + round);
      std::vector<int> theirs(mine.size(), -1);
      const std::uint64_t before = packed_messages() + slots_messages();
      exchange(partner, mine, theirs, type);
      const bool is_packed = packed_messages() + slots_messages() - before >= all;
      packed_rounds += is_packed ? 1 : 0;
      left_rounds += !is_packed && packed_rounds > 0 ? 1 : 0;
      expect_arrived(theirs, 100000 * partner + round);
    }
    if (!under_gapless()) return;
    if (is_everything_packed()) {
      EXPECT_EQ(rounds, packed_rounds);
    } else {
      EXPECT_GE(packed_rounds, 16);
      EXPECT_GE(left_rounds, 4);  // a trial of a way that is much slower ends early
    }
  }

 private:
  static inline std::vector<MPI_Comm> communicators_;
};

TEST_F(TriedWays, OfSendrecv) {
  run(1, 1, [](int partner, const auto& mine, auto& theirs, MPI_Datatype type) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(mine.data(), 1, type, partner, tag, theirs.data(), 1, type, partner, tag,
                                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  });
}

/// What both ends leave to the library, or pack, at the same time, so that neither finds its own way the better one for
/// what its partner does.
TEST_F(TriedWays, OfSendsAndReceivesInTurn) {
  const MPI_Comm communicator = new_communicator();
  run(1, 1, [communicator](int partner, const auto& mine, auto& theirs, MPI_Datatype type) {
    const auto send = [&] { EXPECT_EQ(MPI_SUCCESS, MPI_Send(mine.data(), 1, type, partner, tag, communicator)); };
    if (rank() < partner) send();
    EXPECT_EQ(MPI_SUCCESS, MPI_Recv(theirs.data(), 1, type, partner, tag, communicator, MPI_STATUS_IGNORE));
    if (rank() > partner) send();
  });
}

/// MPI_Waitall is the last call for the messages; of calls that complete some of them nobody knows which one is, until
/// the next message is started.
TEST_F(TriedWays, OfAllThatIsStartedInARow) {
  constexpr int messages = 4;
  for (const Completing way :
       {Completing::wait_all, Completing::wait, Completing::test_all, Completing::wait_any, Completing::wait_some}) {
    SCOPED_TRACE(name(way));
    const MPI_Comm communicator = new_communicator();
    run(messages, messages, [way, communicator](int partner, const auto& mine, auto& theirs, MPI_Datatype type) {
      std::vector<MPI_Request> requests(2 * messages);
      for (std::size_t i = 0; i < messages; ++i) {
        const int one = tag + static_cast<int>(i);
        EXPECT_EQ(MPI_SUCCESS, MPI_Irecv(&theirs[i * span], 1, type, partner, one, communicator, &requests[i]));
      }
      for (std::size_t i = 0; i < messages; ++i) {
        const int one = tag + static_cast<int>(i);
        EXPECT_EQ(MPI_SUCCESS,
                  MPI_Isend(&mine[i * span], 1, type, partner, one, communicator, &requests[messages + i]));
      }
      EXPECT_EQ(0, complete(way, requests, [](int, const MPI_Status&) {}));
    });
  }
}

/// Both ends of persistent messages, with the memory that they are made with.
class PersistentMessages {
 public:
  static constexpr std::size_t count = 4;

  PersistentMessages(int partner, MPI_Datatype type, MPI_Comm communicator = MPI_COMM_WORLD)
      : partner_(partner), type_(type), mine_(count * span), theirs_(count * span) {
    for (std::size_t i = 0; i < count; ++i) {
      const int one = tag + static_cast<int>(i);
      EXPECT_EQ(MPI_SUCCESS,
                MPI_Recv_init(&theirs_[i * span], 1, type, partner, one, communicator, &requests_.emplace_back()));
      EXPECT_EQ(MPI_SUCCESS,
                MPI_Send_init(&mine_[i * span], 1, type, partner, one, communicator, &requests_.emplace_back()));
    }
    made_ = requests_;
  }
  ~PersistentMessages() {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      EXPECT_EQ(MPI_SUCCESS, MPI_Request_free(&request));
    }
  }
  PersistentMessages(const PersistentMessages&) = delete;
  PersistentMessages& operator=(const PersistentMessages&) = delete;

  void start(const std::vector<int>& mine) {
    mine_ = mine;
    theirs_.assign(theirs_.size(), -1);
    EXPECT_EQ(MPI_SUCCESS, MPI_Startall(static_cast<int>(requests_.size()), requests_.data()));
  }
  /// Every status is that of the partner's message.
  std::vector<int> complete(Completing way) {
    const auto check = [&](int i, const MPI_Status& status) {
      int number = -1;
      if (i % 2 != 0) return;
      EXPECT_EQ(MPI_SUCCESS, MPI_Get_count(&status, type_, &number));
      EXPECT_TRUE(partner_ == status.MPI_SOURCE && tag + i / 2 == status.MPI_TAG && number == 1) << "receive " << i / 2;
    };
    // MPICH gives an empty status where it has looked at a persistent request before.
    const bool is_looked_at = way >= Completing::get_status;
    EXPECT_EQ(0, test::complete(way, requests_, is_looked_at ? [](int, const MPI_Status&) {} : OnComplete(check)));
    EXPECT_EQ(made_, requests_) << "persistent requests keep their handles";
    return theirs_;
  }
  std::vector<int> free_sends_and_wait() {
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(MPI_SUCCESS, MPI_Request_free(&requests_[2 * i + 1]));
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&requests_[2 * i], MPI_STATUS_IGNORE));
    return theirs_;
  }

 private:
  int partner_;
  MPI_Datatype type_;
  std::vector<int> mine_, theirs_;
  std::vector<MPI_Request> requests_, made_;
};

TEST_F(TriedWays, OfAllThatAStartallStarts) {
  const int partner = size() - 1 - rank();
  const Owned type(strided(rows, row, row + gap));
  PersistentMessages messages(partner, type);
  run(PersistentMessages::count, PersistentMessages::count, [&](int, const auto& mine, auto& theirs, MPI_Datatype) {
    messages.start(mine);
    theirs = messages.complete(Completing::wait_all);
  });
}

/// Once a start has left its messages to the library, any other call completes them, or frees the sends.
TEST_F(TriedWays, OfPersistentMessagesEndInEveryWay) {
  constexpr int few_rounds = 80, freed = completing_ways;
  const int partner = size() - 1 - rank();
  const Owned type(strided(rows, row, row + gap));
  for (int way = 0; way <= freed; ++way) {
    SCOPED_TRACE(way == freed ? "freed" : name(static_cast<Completing>(way)));
    const MPI_Comm communicator = new_communicator();
    std::optional<PersistentMessages> messages(std::in_place, partner, type, communicator);
    int left_rounds = 0;
    for (int round = 0; round < few_rounds; ++round) {
      const std::uint64_t before = packed_messages() + slots_messages();
      messages->start(counting(PersistentMessages::count * span, 100000 * rank() + round));
      const bool is_left = under_gapless() && packed_messages() + slots_messages() == before;
      left_rounds += is_left ? 1 : 0;
      const bool frees = is_left && way == freed;
      const auto ends = is_left && !frees ? static_cast<Completing>(way) : Completing::wait_all;
      expect_arrived(frees ? messages->free_sends_and_wait() : messages->complete(ends), 100000 * partner + round);
      if (way == freed) MPI_Barrier(communicator);  // what is freed has been received
      if (frees) messages.emplace(partner, type, communicator);
    }
    if (under_gapless() && !is_everything_packed()) {
      EXPECT_GT(left_rounds, 0);
    }
  }
}

TEST_F(TriedWays, OfAlltoallw) {
  constexpr int messages = 2;
  run(messages, 1, [](int partner, const auto& mine, auto& theirs, MPI_Datatype type) {
    std::vector<int> counts(static_cast<std::size_t>(size()), 0);
    counts[static_cast<std::size_t>(partner)] = messages;
    const std::vector<int> displacements(counts.size(), 0);
    const std::vector<MPI_Datatype> types(counts.size(), type);
    EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallw(mine.data(), counts.data(), displacements.data(), types.data(), theirs.data(),
                                         counts.data(), displacements.data(), types.data(), MPI_COMM_WORLD));
  });
}

}  // namespace
}  // namespace gapless::test
