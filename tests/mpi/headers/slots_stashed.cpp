// What a probe takes out of the library to look behind it, the message of a header and all that its sender has sent
// before, is received by every call that may match it.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headers/slot_messages.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

constexpr int first_tag = 5, probed_tag = 7, reply_tag = 9, blocks = 1000;

/// A message that is longer than what libraries send before their receiver has come.
std::vector<int> long_message(int from) { return counting(1 << 20, from); }

/// This process and its partner.
class PairGroup {
 public:
  PairGroup() {
    const std::array<int, 2> both{std::min(rank(), partner()), std::max(rank(), partner())};
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, both.data(), &group_);
    MPI_Group_free(&world);
  }
  ~PairGroup() { MPI_Group_free(&group_); }
  MPI_Group get() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

class SlotsStashed : public testing::Test {
 protected:
  void SetUp() override {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) GTEST_SKIP() << "the last of an odd number of ranks has no partner";
  }
  void send_probed() { MPI_Send(message_.values.data(), 1, message_.type, partner(), probed_tag, MPI_COMM_WORLD); }
  static void probe() { MPI_Probe(partner(), probed_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
  void expect_probed(const std::vector<int>& incoming) const {
    EXPECT_TRUE(placed(std::vector<int>(incoming.size(), -1), message_.packed(blocks), length, stride) == incoming);
  }

  Strided message_{blocks};
};

/// Too short for a header, and made before anything is stashed, so that the receive has been the library's.
TEST_F(SlotsStashed, ShortPersistentReceivesFindIt) {
  constexpr int sent = 42;
  const std::uint64_t before = short_persistent_receives();
  if (sends()) {
    MPI_Send(&sent, 1, MPI_INT, partner(), first_tag, MPI_COMM_WORLD);
    send_probed();
    return;
  }
  int received = -1;
  MPI_Request request;
  MPI_Status status;
  MPI_Recv_init(&received, 1, MPI_INT, partner(), first_tag, MPI_COMM_WORLD, &request);
  if (uses_slots()) {
    EXPECT_EQ(before + 1, short_persistent_receives());
  }
  probe();
  MPI_Start(&request);
  if (uses_slots()) {
    EXPECT_EQ(before, short_persistent_receives());
  }
  std::vector<int> incoming(message_.values.size(), -1);
  MPI_Recv(incoming.data(), 1, message_.type, partner(), probed_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, &status);
  EXPECT_EQ(sent, received);
  EXPECT_EQ(first_tag, status.MPI_TAG);
  EXPECT_EQ(partner(), status.MPI_SOURCE);
  MPI_Request_free(&request);
  expect_probed(incoming);
}

/// The same of receives that are started together, the first of them with nothing stashed, and of those that are freed,
/// or whose communicator is.
TEST_F(SlotsStashed, ShortPersistentReceivesOfAList) {
  constexpr int receives = 20, stashed = 7;
  const std::uint64_t before = short_persistent_receives();
  std::array<int, receives> received{};
  std::array<MPI_Request, receives> requests;
  for (int i = 0; i < receives && !sends(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    MPI_Recv_init(&received[at], 1, MPI_INT, partner(), i, MPI_COMM_WORLD, &requests[at]);
  }
  if (uses_slots() && !sends()) {
    EXPECT_EQ(before + receives, short_persistent_receives());
  }
  for (int round = 0; round < 4; ++round) {
    if (sends()) {
      for (int i = 0; i < receives; ++i) {
        const int value = 100 * round + i;
        MPI_Send(&value, 1, MPI_INT, partner(), i, MPI_COMM_WORLD);
        if (round == 2 && i == stashed)
          MPI_Send(message_.values.data(), 1, message_.type, partner(), receives, MPI_COMM_WORLD);
      }
      MPI_Recv(nullptr, 0, MPI_INT, partner(), receives, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      continue;
    }
    if (round == 2) MPI_Probe(partner(), receives, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Startall(receives, requests.data());
    if (round == 2) {
      if (uses_slots()) {
        EXPECT_EQ(before, short_persistent_receives());
      }
      std::vector<int> incoming(message_.values.size(), -1);
      MPI_Recv(incoming.data(), 1, message_.type, partner(), receives, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      expect_probed(incoming);
    }
    std::array<MPI_Status, receives> statuses;
    MPI_Waitall(receives, requests.data(), statuses.data());
    for (int i = 0; i < receives; ++i) {
      EXPECT_EQ(100 * round + i, received[static_cast<std::size_t>(i)]);
      EXPECT_EQ(i, statuses[static_cast<std::size_t>(i)].MPI_TAG);
    }
    MPI_Send(nullptr, 0, MPI_INT, partner(), receives, MPI_COMM_WORLD);
  }
  MPI_Comm communicator;
  MPI_Comm_create_group(MPI_COMM_WORLD, PairGroup().get(), 3, &communicator);
  const int peer = rank(communicator) ^ 1;
  const std::uint64_t kept = short_persistent_receives();
  MPI_Request late = MPI_REQUEST_NULL, last = MPI_REQUEST_NULL;
  MPI_Recv_init(received.data(), 1, MPI_INT, peer, 0, communicator, &late);
  MPI_Recv_init(received.data(), 1, MPI_INT, peer, 0, communicator, &last);
  if (uses_slots()) {
    EXPECT_EQ(kept + 2, short_persistent_receives());
  }
  for (MPI_Request& request : requests) {
    if (!sends()) MPI_Request_free(&request);
  }
  MPI_Request_free(&late);
  if (uses_slots()) {
    EXPECT_EQ(before + 1, short_persistent_receives());
  }
  MPI_Comm_free(&communicator);
  EXPECT_EQ(before, short_persistent_receives());
  MPI_Request_free(&last);
}

int refuse(MPI_Comm, int, void*, void* refuses) { return *static_cast<bool*>(refuses) ? MPI_ERR_OTHER : MPI_SUCCESS; }

/// A communicator that a callback of the program's keeps from being freed is used as before.
TEST_F(SlotsStashed, ShortPersistentReceivesOfACommunicatorThatIsNotFreed) {
  constexpr int sent = 42;
  MPI_Comm communicator;
  MPI_Comm_create_group(MPI_COMM_WORLD, PairGroup().get(), 4, &communicator);
  const int peer = rank(communicator) ^ 1;
  const ReturnErrors of_none(MPI_COMM_WORLD), of_none_either(MPI_COMM_SELF);
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  bool refuses = true;
  int keyval, received = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &keyval, &refuses);
  MPI_Comm_set_attr(communicator, keyval, nullptr);
  if (!sends()) MPI_Recv_init(&received, 1, MPI_INT, peer, first_tag, communicator, &request);
  MPI_Comm freed = communicator;
  const bool is_freed = MPI_Comm_free(&freed) == MPI_SUCCESS;  // MPICH 5.0.2 says so
  if (is_freed) {
    if (!sends()) MPI_Request_free(&request);
  } else if (sends()) {
    MPI_Send(&sent, 1, MPI_INT, peer, first_tag, communicator);
    MPI_Send(message_.values.data(), 1, message_.type, peer, probed_tag, communicator);
  } else {
    MPI_Probe(peer, probed_tag, communicator, MPI_STATUS_IGNORE);
    MPI_Start(&request);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_EQ(sent, received);
    std::vector<int> incoming(message_.values.size(), -1);
    MPI_Recv(incoming.data(), 1, message_.type, peer, probed_tag, communicator, MPI_STATUS_IGNORE);
    expect_probed(incoming);
    MPI_Request_free(&request);
  }
  refuses = false;
  MPI_Comm_free_keyval(&keyval);
  if (!is_freed) MPI_Comm_free(&communicator);
}

/// Messages that cannot be headers are the library's; a receive of one needs no look.
TEST_F(SlotsStashed, MatchedMessagesOfOtherLengthsAreTheLibrarys) {
  constexpr int sent = 42;
  if (sends()) {
    send_probed();
    MPI_Send(&sent, 1, MPI_INT, partner(), first_tag, MPI_COMM_WORLD);
    return;
  }
  int received = -1;
  std::vector<int> incoming(message_.values.size(), -1);
  MPI_Message message, short_message;
  MPI_Status status;
  MPI_Mprobe(partner(), first_tag, MPI_COMM_WORLD, &short_message, &status);
  if (uses_slots()) {
    EXPECT_EQ(0U, matched_messages_known());
  }
  MPI_Mprobe(partner(), probed_tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  if (uses_slots()) {
    EXPECT_EQ(1U, matched_messages_known());
  }
  MPI_Mrecv(&received, 1, MPI_INT, &short_message, &status);
  EXPECT_EQ(sent, received);
  EXPECT_EQ(first_tag, status.MPI_TAG);
  EXPECT_EQ(partner(), status.MPI_SOURCE);
  MPI_Mrecv(incoming.data(), 1, message_.type, &message, MPI_STATUS_IGNORE);
  expect_probed(incoming);
  EXPECT_EQ(0U, matched_messages_known());
}

/// The sender of what is received takes the reply only later: a call under a request must not wait for that.
TEST_F(SlotsStashed, ExchangesUnderARequestReturnAtOnce) {
  constexpr int go_on = 11;
  for (const bool replaces : {false, true}) {
    SCOPED_TRACE(replaces);
    const std::vector<int> reply = long_message(rank());
    if (sends()) {
      send_probed();
      MPI_Recv(nullptr, 0, MPI_INT, partner(), go_on, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      std::vector<int> incoming(reply.size(), -1);
      MPI_Recv(incoming.data(), static_cast<int>(incoming.size()), MPI_INT, partner(), reply_tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      EXPECT_TRUE(long_message(partner()) == incoming);
      continue;
    }
    probe();
    MPI_Request request;
    std::vector<int> incoming(message_.values.size(), -1), both = reply;
    if (replaces) {
      MPI_Isendrecv_replace(both.data(), static_cast<int>(both.size()), MPI_INT, partner(), reply_tag, partner(),
                            probed_tag, MPI_COMM_WORLD, &request);
    } else {
      MPI_Isendrecv(reply.data(), static_cast<int>(reply.size()), MPI_INT, partner(), reply_tag, incoming.data(), 1,
                    message_.type, partner(), probed_tag, MPI_COMM_WORLD, &request);
    }
    MPI_Send(nullptr, 0, MPI_INT, partner(), go_on, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (replaces) {
      std::vector<int> wanted = reply;
      const std::vector<int> packed = message_.packed(blocks);
      std::copy(packed.begin(), packed.end(), wanted.begin());
      EXPECT_TRUE(wanted == both);
    } else {
      expect_probed(incoming);
    }
  }
}

/// A long message that has been stashed too is received only after what is replaced has been sent.
TEST_F(SlotsStashed, ReplacementsReceiveWhileTheySend) {
  const std::vector<int> older = long_message(1), reply = long_message(2);
  const int count = static_cast<int>(older.size());
  if (sends()) {
    MPI_Request request;
    MPI_Isend(older.data(), count, MPI_INT, partner(), first_tag, MPI_COMM_WORLD, &request);
    send_probed();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    std::vector<int> incoming(reply.size(), -1);
    MPI_Recv(incoming.data(), count, MPI_INT, partner(), reply_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_TRUE(reply == incoming);
    return;
  }
  probe();
  std::vector<int> both = reply, incoming(message_.values.size(), -1);
  MPI_Status status;
  MPI_Sendrecv_replace(both.data(), count, MPI_INT, partner(), reply_tag, partner(), first_tag, MPI_COMM_WORLD,
                       &status);
  EXPECT_EQ(first_tag, status.MPI_TAG);
  EXPECT_TRUE(older == both);
  MPI_Recv(incoming.data(), 1, message_.type, partner(), probed_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect_probed(incoming);
}

/// A char and a double right behind it, in 16 bytes: packed they are cut where a library would lose them.
Owned of_chars_and_doubles(int count) {
  const std::array<int, 2> lengths{1, 1};
  const std::array<MPI_Aint, 2> places{0, 1};
  const std::array<MPI_Datatype, 2> fields{MPI_CHAR, MPI_DOUBLE};
  MPI_Datatype pair, element, all;
  MPI_Type_create_struct(2, lengths.data(), places.data(), fields.data(), &pair);
  MPI_Type_create_resized(pair, 0, 16, &element);
  MPI_Type_contiguous(count, element, &all);
  MPI_Type_free(&pair);
  MPI_Type_free(&element);
  return Owned(all);
}

TEST_F(SlotsStashed, ReplacementsOfElementsThatMayNotBeCut) {
  constexpr int count = 2000;
  constexpr std::size_t bytes = std::size_t{16} * count;
  const Owned type = of_chars_and_doubles(count);
  const auto values_of = [](int from) {
    std::vector<char> values(bytes);
    for (std::size_t k = 0; k < bytes; ++k)
      values[k] = static_cast<char>((k * 7 + static_cast<std::size_t>(from)) % 97);
    return values;
  };
  const auto expect_values = [&](const std::vector<char>& incoming, const std::vector<char>& before, int from) {
    const std::vector<char> values = values_of(from);
    for (std::size_t k = 0; k < bytes; ++k) ASSERT_EQ(k % 16 < 9 ? values[k] : before[k], incoming[k]) << k;
  };
  const std::vector<char> mine = values_of(rank());
  std::vector<char> both = mine;
  if (sends()) {
    MPI_Send(mine.data(), 1, type, partner(), probed_tag, MPI_COMM_WORLD);
    MPI_Recv(both.data(), 1, type, partner(), reply_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    probe();
    MPI_Sendrecv_replace(both.data(), 1, type, partner(), reply_tag, partner(), probed_tag, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
  }
  expect_values(both, mine, partner());
}

/// Whichever copy of its handle the program starts and completes it by.
TEST_F(SlotsStashed, PersistentReceivesKeepTheirHandle) {
  for (int times = 0; times < 4; ++times) {
    if (sends()) {
      send_probed();
      MPI_Recv(nullptr, 0, MPI_INT, partner(), reply_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      continue;
    }
    std::vector<int> incoming(message_.values.size(), -1);
    MPI_Request request;
    MPI_Recv_init(incoming.data(), 1, message_.type, partner(), probed_tag, MPI_COMM_WORLD, &request);
    probe();
    MPI_Request copy = request;
    MPI_Status status;
    MPI_Start(&copy);
    if (times % 2 == 0) {
      MPI_Wait(&request, &status);
    } else {
      for (int is_complete = 0; is_complete == 0;) MPI_Testall(1, &request, &is_complete, &status);
    }
    int elements = -1;
    MPI_Get_elements(&status, message_.type, &elements);
    EXPECT_EQ(blocks * length, elements);
    EXPECT_EQ(probed_tag, status.MPI_TAG);
    EXPECT_EQ(partner(), status.MPI_SOURCE);
    expect_probed(incoming);
    MPI_Request_free(&request);
    MPI_Send(nullptr, 0, MPI_INT, partner(), reply_tag, MPI_COMM_WORLD);
  }
}

/// Errors of what is received are told to its communicator, and not to the world, whose handler would end the job.
TEST_F(SlotsStashed, TruncatedReceivesTellTheirCommunicator) {
  const ReturnErrors on_self(MPI_COMM_SELF);
  MPI_Comm communicator;
  MPI_Comm_create_group(MPI_COMM_WORLD, PairGroup().get(), 3, &communicator);
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  const int peer = rank(communicator) ^ 1;
  constexpr int ints = 1024;
  for (int times = 0; times < 3; ++times) {
    std::vector<int> values(ints, times), incoming(message_.values.size(), -1);
    if (sends()) {
      MPI_Send(values.data(), ints, MPI_INT, peer, first_tag, communicator);
      MPI_Send(message_.values.data(), 1, message_.type, peer, probed_tag, communicator);
      continue;
    }
    MPI_Probe(peer, probed_tag, communicator, MPI_STATUS_IGNORE);
    MPI_Status status;
    const int code = times == 0   ? MPI_Recv(values.data(), ints / 2, MPI_INT, peer, first_tag, communicator, &status)
                     : times == 1 ? MPI_Sendrecv(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, values.data(), ints / 2,
                                                 MPI_INT, peer, first_tag, communicator, &status)
                                  : MPI_Sendrecv_replace(values.data(), ints / 2, MPI_INT, MPI_PROC_NULL, 0, peer,
                                                         first_tag, communicator, &status);
    EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(code)) << times;
    MPI_Recv(incoming.data(), 1, message_.type, peer, probed_tag, communicator, MPI_STATUS_IGNORE);
    expect_probed(incoming);
  }
  MPI_Comm_free(&communicator);
}

/// A persistent receive that has been freed while it was active leaves nothing to those that come after it.
TEST_F(SlotsStashed, FreedPersistentReceivesLeaveNoStatus) {
  constexpr int later_tag = 13, later = 6;
  const Strided short_message(later);
  for (int times = 0; times < 4; ++times) {
    if (sends()) {
      send_probed();
      MPI_Recv(nullptr, 0, MPI_INT, partner(), reply_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(message_.values.data(), 1, message_.type, partner(), later_tag, MPI_COMM_WORLD);
      MPI_Send(short_message.values.data(), 1, short_message.type, partner(), later_tag, MPI_COMM_WORLD);
      continue;
    }
    std::vector<int> incoming(message_.values.size(), -1);
    MPI_Request request;
    MPI_Recv_init(incoming.data(), 1, message_.type, partner(), probed_tag, MPI_COMM_WORLD, &request);
    probe();
    MPI_Start(&request);
    MPI_Request_free(&request);
    // Completes what was freed, too.
    MPI_Sendrecv(nullptr, 0, MPI_INT, rank(), reply_tag, nullptr, 0, MPI_INT, rank(), reply_tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    std::array<MPI_Request, 2> requests;
    std::array<MPI_Status, 2> statuses;
    std::vector<int> first(message_.values.size(), -1), second(message_.values.size(), -1);
    MPI_Irecv(first.data(), 1, message_.type, partner(), MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(second.data(), 1, message_.type, partner(), MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(nullptr, 0, MPI_INT, partner(), reply_tag, MPI_COMM_WORLD);
    MPI_Waitall(2, requests.data(), statuses.data());
    for (int i = 0; i < 2; ++i) {
      int elements = -1;
      MPI_Get_elements(&statuses[static_cast<std::size_t>(i)], message_.type, &elements);
      EXPECT_EQ((i == 0 ? blocks : later) * length, elements);
      EXPECT_EQ(later_tag, statuses[static_cast<std::size_t>(i)].MPI_TAG);
      EXPECT_EQ(partner(), statuses[static_cast<std::size_t>(i)].MPI_SOURCE);
    }
    expect_probed(incoming);
    expect_probed(first);
  }
}

/// The library refuses such calls before it looks for a message.
TEST_F(SlotsStashed, MistakenReceivesLeaveTheMessage) {
  const ReturnErrors errors(MPI_COMM_WORLD), errors_without_object(MPI_COMM_SELF);
  constexpr int ways = 5;
  for (int way = 0; way < ways; ++way) {
    SCOPED_TRACE(way);
    if (sends()) {
      send_probed();
      MPI_Recv(nullptr, 0, MPI_INT, partner(), reply_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      continue;
    }
    std::vector<int> incoming(message_.values.size(), -1);
    MPI_Message matched = MPI_MESSAGE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    const bool is_matched = way >= 3;
    if (is_matched) MPI_Mprobe(partner(), probed_tag, MPI_COMM_WORLD, &matched, &status);
    if (!is_matched) probe();
    const int code =
        way == 0   ? MPI_Recv(incoming.data(), -1, message_.type, partner(), probed_tag, MPI_COMM_WORLD, &status)
        : way == 1 ? MPI_Irecv(incoming.data(), -1, message_.type, partner(), probed_tag, MPI_COMM_WORLD, &request)
        : way == 2 ? MPI_Sendrecv(&way, -1, MPI_INT, partner(), reply_tag, incoming.data(), 1, message_.type, partner(),
                                  probed_tag, MPI_COMM_WORLD, &status)
        : way == 3 ? MPI_Mrecv(incoming.data(), -1, message_.type, &matched, &status)
                   : MPI_Imrecv(incoming.data(), -1, message_.type, &matched, &request);
    EXPECT_EQ(MPI_ERR_COUNT, error_class(code));
    if (is_matched) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Mrecv(incoming.data(), 1, message_.type, &matched, &status));
    } else {
      EXPECT_EQ(MPI_SUCCESS,
                MPI_Recv(incoming.data(), 1, message_.type, partner(), probed_tag, MPI_COMM_WORLD, &status));
    }
    EXPECT_EQ(partner(), status.MPI_SOURCE);
    EXPECT_EQ(probed_tag, status.MPI_TAG);
    expect_probed(incoming);
    MPI_Send(nullptr, 0, MPI_INT, partner(), reply_tag, MPI_COMM_WORLD);
  }
}

}  // namespace
}  // namespace gapless::test
