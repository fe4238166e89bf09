// Blocking messages of strided data: what arrives, what is left alone, and what the status says, in every mode, on
// every kind of communicator, at every size. Every test works on any number of ranks: a rank without a neighbour talks
// to itself.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/messages.hpp"
#include "support/packs_something.hpp"

namespace gapless::test {
namespace {

int partner_in(MPI_Comm communicator) {
  const int partner = rank(communicator) ^ 1;
  return partner < size(communicator) ? partner : rank(communicator);
}

std::vector<int> from(int rank, std::size_t size) { return counting(size, 1000 * (rank + 1)); }

/// Strided to strided (another stride), with the partner in `communicator`; checks bytes and status.
void expect_exchange(MPI_Comm communicator, SendMode mode, ReceiveWay way, int blocks, int tag = 5) {
  const Owned sent(strided(blocks, 2, 5));
  const Owned received(strided(blocks, 2, 3));
  const int partner = partner_in(communicator);
  std::vector<int> source = from(rank(communicator), static_cast<std::size_t>(blocks) * 5);
  std::vector<int> destination(static_cast<std::size_t>(blocks) * 3, -1);
  const std::vector<int> wanted =
      placed(destination, picked(from(partner, static_cast<std::size_t>(blocks) * 5), blocks, 2, 5), 2, 3);
  MPI_Status status;
  exchange(mode, way, {source.data(), 1, sent}, {destination.data(), 1, received}, partner, &status, communicator, tag);
  EXPECT_EQ(wanted, destination);
  EXPECT_EQ(partner, status.MPI_SOURCE);
  EXPECT_EQ(tag, status.MPI_TAG);
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT_EQ(2 * blocks, count);
}

class Modes : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Modes, StridedDataArrives) {
  const PacksSomething packs(4);
  const auto [mode, way] = GetParam();
  for (int blocks : {1, 16, 3000})
    expect_exchange(MPI_COMM_WORLD, static_cast<SendMode>(mode), static_cast<ReceiveWay>(way), blocks);
}

INSTANTIATE_TEST_SUITE_P(PointToPoint, Modes,
                         testing::Combine(testing::Range(0, send_modes), testing::Range(0, receive_ways)),
                         [](const auto& info) {
                           std::string text = std::string(name(static_cast<SendMode>(std::get<0>(info.param)))) + "To" +
                                              name(static_cast<ReceiveWay>(std::get<1>(info.param)));
                           std::erase(text, ' ');
                           std::erase(text, '_');
                           return text;
                         });

/// New memory for packed bytes takes longer to touch than one message gains, and a program may have no room for it.
/// First of all tests: receivers that have met headers take long messages in rings.
TEST(LongMessages, TheFirstOnesDoWithoutNewMemory) {
  constexpr int messages = 4, blocks = 700'000, length = 9, stride = 17;
  const Owned type(strided(blocks, length, stride));
  std::vector<int> sent = counting(std::size_t{stride} * blocks, rank());
  const int partner = partner_in(MPI_COMM_WORLD);
  const std::vector<int> packed = picked(counting(std::size_t{stride} * blocks, partner), blocks, length, stride);
  const auto before = packed_messages();
  for (int message = 0; message < messages; ++message) {
    std::vector<int> received(sent.size(), -1);
    MPI_Status status;
    exchange(SendMode::send, ReceiveWay::recv, {sent.data(), 1, type}, {received.data(), 1, type}, partner, &status);
    EXPECT_TRUE(placed(std::vector<int>(sent.size(), -1), packed, length, stride) == received);
    if (message == 0 && std::getenv("GAPLESS_SCHEME") == nullptr) {
      EXPECT_EQ(before, packed_messages());
    }
  }
}

/// Around every threshold there is: header size, eager limits, pool classes, and several MiB.
TEST(Sizes, AllArriveWhole) {
  const PacksSomething packs(20);
  for (int ints : {1, 62, 63, 64, 1023, 1024, 1025, 16384, 16385, 65536, 2 << 20})
    expect_exchange(MPI_COMM_WORLD, SendMode::send, ReceiveWay::recv, ints);
}

TEST(Sizes, Message251BytesIsAMessageLikeAnyOther) {
  const PacksSomething packs(2);
  MPI_Datatype every_third;
  MPI_Type_vector(251, 1, 3, MPI_BYTE, &every_third);
  const Owned type(every_third);
  const int partner = partner_in(MPI_COMM_WORLD);
  std::vector<unsigned char> source(753);
  for (std::size_t k = 0; k < source.size(); ++k) source[k] = static_cast<unsigned char>(k * 7);
  std::vector<unsigned char> contiguous(251, 0);
  MPI_Status status;
  exchange(SendMode::send, ReceiveWay::recv, {source.data(), 1, type}, {contiguous.data(), 251, MPI_BYTE}, partner,
           &status);
  for (std::size_t k = 0; k < 251; ++k) EXPECT_EQ(source[3 * k], contiguous[k]);
  std::vector<unsigned char> destination(753, 0);
  exchange(SendMode::send, ReceiveWay::recv, {contiguous.data(), 251, MPI_BYTE}, {destination.data(), 1, type}, partner,
           &status);
  for (std::size_t k = 0; k < 251; ++k) EXPECT_EQ(source[3 * k], destination[3 * k]);
}

/// The sender sends `sent` blocks, the receiver would take 10.
MPI_Status receive_short(int sent, std::vector<int>& destination) {
  const Owned sender(strided(sent, 2, 5));
  const Owned receiver(strided(10, 2, 3));
  std::vector<int> source = counting(static_cast<std::size_t>(sent) * 5 + 1, 100);
  destination.assign(30, -1);
  MPI_Status status;
  exchange(SendMode::send, ReceiveWay::recv, {source.data(), 1, sender}, {destination.data(), 1, receiver},
           partner_in(MPI_COMM_WORLD), &status);
  return status;
}

TEST(ShortMessages, LeaveTheRestUntouchedAndTheStatusRight) {
  const PacksSomething packs(6);
  for (int sent : {0, 1, 9, 10}) {
    std::vector<int> destination;
    const MPI_Status status = receive_short(sent, destination);
    const std::vector<int> values = picked(counting(51, 100), sent, 2, 5);
    EXPECT_EQ(placed(std::vector<int>(30, -1), values, 2, 3), destination) << sent;
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(2 * sent, count);
  }
}

TEST(ShortMessages, OfPartOfATypeHaveElementsButNoCount) {
  const PacksSomething packs;
  const Owned pair(strided(2, 2, 3));  // 4 ints
  const int partner = partner_in(MPI_COMM_WORLD);
  std::vector<int> source = counting(6, 1);
  std::vector<int> destination(12, -1);
  MPI_Status status;
  exchange(SendMode::send, ReceiveWay::recv, {source.data(), 6, MPI_INT}, {destination.data(), 2, pair}, partner,
           &status);
  EXPECT_EQ((std::vector<int>{1, 2, -1, 3, 4, -1, 5, 6, -1, -1, -1, -1}), destination);
  int count = -1;
  MPI_Get_count(&status, pair, &count);
  EXPECT_EQ(MPI_UNDEFINED, count);
  int elements = -1;
  MPI_Get_elements(&status, pair, &elements);
  EXPECT_EQ(6, elements);
  MPI_Count many = -1;
  MPI_Get_elements_x(&status, pair, &many);
  EXPECT_EQ(6, many);
  int cancelled = -1;
  MPI_Test_cancelled(&status, &cancelled);
  EXPECT_EQ(0, cancelled);
}

TEST(EmptyMessages, OfNoCountOrNoSizeTouchNothing) {
  const Owned some(strided(4, 2, 3));
  MPI_Datatype none;
  MPI_Type_contiguous(0, MPI_INT, &none);
  const Owned empty(none);
  std::vector<int> memory(12, 3);
  for (const Message& message : {Message{memory.data(), 0, some}, Message{memory.data(), 5, empty}}) {
    std::vector<int> destination(12, -1);
    MPI_Status status;
    exchange(SendMode::send, ReceiveWay::recv, message, {destination.data(), 1, some}, partner_in(MPI_COMM_WORLD),
             &status);
    EXPECT_EQ(std::vector<int>(12, -1), destination);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(0, count);
  }
}

TEST(NoProcess, NothingIsSentNothingReceived) {
  const Owned type(strided(4, 2, 3));
  std::vector<int> memory(12, 3);
  EXPECT_EQ(MPI_SUCCESS, MPI_Send(memory.data(), 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS, MPI_Ssend(memory.data(), 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  MPI_Status status;
  EXPECT_EQ(MPI_SUCCESS, MPI_Recv(memory.data(), 1, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
  EXPECT_EQ(MPI_PROC_NULL, status.MPI_SOURCE);
  EXPECT_EQ(MPI_ANY_TAG, status.MPI_TAG);
  int count = -1;
  MPI_Get_count(&status, type, &count);
  EXPECT_EQ(0, count);
  EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv_replace(memory.data(), 1, type, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0,
                                              MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI_Message message;
  EXPECT_EQ(MPI_SUCCESS, MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
  EXPECT_EQ(MPI_MESSAGE_NO_PROC, message);
  EXPECT_EQ(MPI_SUCCESS, MPI_Mrecv(memory.data(), 1, type, &message, &status));
  EXPECT_EQ(MPI_PROC_NULL, status.MPI_SOURCE);
  EXPECT_EQ(MPI_MESSAGE_NULL, message);
  EXPECT_EQ(std::vector<int>(12, 3), memory);
}

TEST(Wildcards, TellWhoSentWhat) {
  const PacksSomething packs;
  const Owned type(strided(4, 2, 3));
  const int me = rank();
  std::vector<int> source = from(me, 12);
  MPI_Request request;
  MPI_Isend(source.data(), 1, type, 0, 40 + me, MPI_COMM_WORLD, &request);
  if (me == 0) {
    for (int k = 0; k < size(); ++k) {
      std::vector<int> destination(12, -1);
      MPI_Status status;
      EXPECT_EQ(MPI_SUCCESS,
                MPI_Recv(destination.data(), 1, type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
      EXPECT_EQ(status.MPI_SOURCE + 40, status.MPI_TAG);
      const std::vector<int> values = picked(from(status.MPI_SOURCE, 12), 4, 2, 3);
      EXPECT_EQ(placed(std::vector<int>(12, -1), values, 2, 3), destination);
    }
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

TEST(Status, MayBeIgnored) {
  const PacksSomething packs(2);
  const Owned type(strided(4, 2, 3));
  std::vector<int> source = counting(12);
  std::vector<int> destination(12, -1);
  exchange(SendMode::send, ReceiveWay::recv, {source.data(), 1, type}, {destination.data(), 1, type},
           partner_in(MPI_COMM_WORLD), MPI_STATUS_IGNORE);
  EXPECT_EQ(placed(std::vector<int>(12, -1), picked(source, 4, 2, 3), 2, 3), destination);
}

TEST(SendAndReceive, ShiftARingAndReplace) {
  const PacksSomething packs(4);
  const Owned type(strided(40, 2, 3));
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  std::vector<int> source = from(rank(), 120);
  std::vector<int> destination(120, -1);
  const std::vector<int> values = picked(from(left, 120), 40, 2, 3);
  MPI_Status status;
  EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(source.data(), 1, type, right, 3, destination.data(), 1, type, left, 3,
                                      MPI_COMM_WORLD, &status));
  EXPECT_EQ(placed(std::vector<int>(120, -1), values, 2, 3), destination);
  EXPECT_EQ(left, status.MPI_SOURCE);
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Sendrecv_replace(source.data(), 1, type, right, 3, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  EXPECT_EQ(placed(from(rank(), 120), values, 2, 3), source);
}

TEST(SendAndReceive, OneSideMayBeContiguousOrAbsent) {
  const PacksSomething packs;
  const Owned type(strided(40, 2, 3));
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  std::vector<int> source = from(rank(), 120);
  std::vector<int> packed(80, -1);
  EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(source.data(), 1, type, right, 3, packed.data(), 80, MPI_INT, left, 3,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  EXPECT_EQ(picked(from(left, 120), 40, 2, 3), packed);
  const bool first = rank() == 0;
  const bool last = rank() == size() - 1;
  std::vector<int> destination(120, -1);
  EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(source.data(), 1, type, last ? MPI_PROC_NULL : right, 4, destination.data(), 1,
                                      type, first ? MPI_PROC_NULL : left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  const std::vector<int> values = first ? std::vector<int>{} : picked(from(left, 120), 40, 2, 3);
  EXPECT_EQ(placed(std::vector<int>(120, -1), values, 2, 3), destination);
}

TEST(Communicators, DuplicatesSplitsAndGrids) {
  const PacksSomething packs(14);
  MPI_Comm duplicate, split, grid;
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  MPI_Comm_split(MPI_COMM_WORLD, rank() / 2, -rank(), &split);
  int dimensions[2] = {0, 0};
  const int periods[2] = {1, 1};
  MPI_Dims_create(size(), 2, dimensions);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periods, 1, &grid);
  for (MPI_Comm* communicator : {&duplicate, &split, &grid}) {
    expect_exchange(*communicator, SendMode::send, ReceiveWay::recv, 20);
    expect_exchange(*communicator, SendMode::ssend, ReceiveWay::mrecv, 20);
    MPI_Comm_free(communicator);
  }
  expect_exchange(MPI_COMM_SELF, SendMode::send, ReceiveWay::recv, 20);
}

TEST(Communicators, Intercommunicators) {
  if (size() < 2) GTEST_SKIP() << "an intercommunicator takes two groups";
  const PacksSomething packs(2);
  MPI_Comm half, both;
  const int color = rank() % 2;
  MPI_Comm_split(MPI_COMM_WORLD, color, rank(), &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 9, &both);
  const Owned type(strided(20, 2, 3));
  std::vector<int> source = from(rank(), 60);
  std::vector<int> destination(60, -1);
  MPI_Status status;
  const int remote = rank(half);  // 2 or 4 ranks: as many on either side
  MPI_Sendrecv(source.data(), 1, type, remote, 2, destination.data(), 1, type, remote, 2, both, &status);
  const int sender = 2 * remote + (1 - color);
  EXPECT_EQ(placed(std::vector<int>(60, -1), picked(from(sender, 60), 20, 2, 3), 2, 3), destination);
  EXPECT_EQ(remote, status.MPI_SOURCE);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

/// Messages on one tag arrive in the order they were sent, whether packed by gapless or passed through.
TEST(Order, IsKeptAmongContiguousAndStridedMessages) {
  const PacksSomething packs(40);
  constexpr int messages = 60;
  const Owned type(strided(8, 2, 3));
  const int partner = partner_in(MPI_COMM_WORLD);
  std::vector<std::vector<int>> sources;
  std::vector<MPI_Request> requests(messages, MPI_REQUEST_NULL);
  for (int k = 0; k < messages; ++k) sources.push_back(std::vector<int>(24, k));
  const bool to_myself = partner == rank();
  for (int k = 0; k < messages; ++k) {
    const bool packs = k % 3 != 0;
    int* memory = sources[static_cast<std::size_t>(k)].data();
    const int count = packs ? 1 : 16;
    const MPI_Datatype kind = packs ? static_cast<MPI_Datatype>(type) : MPI_INT;
    if (k % 2 == 0 || to_myself)
      MPI_Isend(memory, count, kind, partner, 6, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(k)]);
    else
      MPI_Send(memory, count, kind, partner, 6, MPI_COMM_WORLD);
  }
  for (int k = 0; k < messages; ++k) {
    std::vector<int> destination(24, -1);
    if (k % 5 < 3)
      MPI_Recv(destination.data(), 1, type, partner, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Recv(destination.data(), 16, MPI_INT, partner, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(k, destination[0]);
    EXPECT_EQ(k, destination[k % 5 < 3 ? 22 : 15]);
  }
  MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
}

TEST(Bottom, AbsoluteAddressesWork) {
  const PacksSomething packs(3);
  std::vector<int> first = from(rank(), 4);
  std::vector<int> second = from(rank(), 8);
  MPI_Aint places[2];
  MPI_Get_address(&first[1], &places[0]);
  MPI_Get_address(&second[3], &places[1]);
  const int lengths[2] = {2, 4};
  MPI_Datatype absolute;
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &absolute);
  const Owned type(absolute);
  const int partner = partner_in(MPI_COMM_WORLD);
  std::vector<int> packed(6, -1);
  MPI_Status status;
  exchange(SendMode::send, ReceiveWay::recv, {MPI_BOTTOM, 1, type}, {packed.data(), 6, MPI_INT}, partner, &status);
  const int base = 1000 * (partner + 1);
  EXPECT_EQ((std::vector<int>{base + 1, base + 2, base + 3, base + 4, base + 5, base + 6}), packed);
  std::vector<int> news = {1, 2, 3, 4, 5, 6};
  exchange(SendMode::send, ReceiveWay::recv, {news.data(), 6, MPI_INT}, {MPI_BOTTOM, 1, type}, partner, &status);
  EXPECT_EQ(1, first[1]);
  EXPECT_EQ(2, first[2]);
  EXPECT_EQ((std::vector<int>{3, 4, 5, 6}), std::vector<int>(second.begin() + 3, second.begin() + 7));
  int position = 0;
  std::vector<int> out(6, -1);
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(MPI_BOTTOM, 1, type, out.data(), 24, &position, MPI_COMM_WORLD));
  EXPECT_EQ(news, out);
}

#if MPI_VERSION >= 4 && !defined(OPEN_MPI)
TEST(LargeCounts, TheSameInLargeCountForm) {
  const PacksSomething packs(6);
  MPI_Datatype vector;
  MPI_Type_vector_c(300, 2, 3, MPI_INT, &vector);
  const Owned type(vector);
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  std::vector<int> source = from(rank(), 900);
  std::vector<int> destination(900, -1);
  const std::vector<int> wanted = placed(destination, picked(from(left, 900), 300, 2, 3), 2, 3);
  MPI_Sendrecv_c(source.data(), 1, type, right, 3, destination.data(), 1, type, left, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  EXPECT_EQ(wanted, destination);

  destination.assign(900, -1);
  MPI_Request request;
  MPI_Isend_c(source.data(), 1, type, right, 4, MPI_COMM_WORLD, &request);
  MPI_Message message;
  MPI_Mprobe(left, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv_c(destination.data(), 1, type, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(wanted, destination);

  for (auto* send : {&MPI_Send_c, &MPI_Ssend_c}) {
    destination.assign(900, -1);
    if (left == rank()) break;
    if (rank() % 2 == 0) send(source.data(), 1, type, right, 5, MPI_COMM_WORLD);
    MPI_Recv_c(destination.data(), 1, type, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank() % 2 == 1) send(source.data(), 1, type, right, 5, MPI_COMM_WORLD);
    EXPECT_EQ(wanted, destination);
  }

  std::vector<int> packed(600, -1);
  MPI_Count position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack_c(source.data(), 1, type, packed.data(), 2400, &position, MPI_COMM_WORLD));
  EXPECT_EQ(2400, position);
  EXPECT_EQ(picked(source, 300, 2, 3), packed);
  position = 0;
  destination.assign(900, -1);
  EXPECT_EQ(MPI_SUCCESS, MPI_Unpack_c(packed.data(), 2400, &position, destination.data(), 1, type, MPI_COMM_WORLD));
  EXPECT_EQ(placed(std::vector<int>(900, -1), packed, 2, 3), destination);
  MPI_Sendrecv_replace_c(source.data(), 1, type, right, 6, left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_EQ(placed(from(rank(), 900), picked(from(left, 900), 300, 2, 3), 2, 3), source);
}
#endif

}  // namespace
}  // namespace gapless::test
