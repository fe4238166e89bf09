// Receivers whose memory is not contiguous and whose message is the library's, which scatters a header into their
// blocks.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "headers/partners.hpp"
#include "headers/slot_messages.hpp"
#include "support/completing.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

/// A receive that returns the code of the call that ends it.
using Taking = int (*)(void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status);

int receive_at_once(void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
  return MPI_Recv(memory, 1, type, from, tag, communicator, status);
}
int receive_with_others(void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
  std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  std::array<MPI_Status, 2> statuses;
  MPI_Irecv(memory, 1, type, from, tag, communicator, &requests[1]);
  const int code = MPI_Waitall(2, requests.data(), statuses.data());
  *status = statuses[1];
  return code == MPI_ERR_IN_STATUS ? status->MPI_ERROR : code;
}
int receive_matched(void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
  MPI_Message message;
  MPI_Mprobe(from, tag, communicator, &message, status);
  return MPI_Mrecv(memory, 1, type, &message, status);
}

/// A receive of long blocks is the library's own, which scatters a header like any message.
TEST(SlotsScattered, ReceivesOfLongBlocks) {
  constexpr int blocks = 20'000, half = blocks * length / 2, gap = 5, times = 20;
  const Strided message(blocks);
  const Owned two_blocks(strided(2, half, half + gap)), too_short(strided(2, half / 2, half)),
      short_message(strided(120, 1, 2));
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const auto slots_before = slots_messages();
  for (const Taking taking :
       {receive_at_once, receive_by_request, receive_with_others, receive_persistently, receive_matched}) {
    for (int time = 0; time < times; ++time) {
      // Every third is as long as a header, and every fourth does not fit.
      const bool is_short = time % 3 == 2, does_not_fit = !is_short && time % 4 == 3;
      const MPI_Datatype sent = is_short ? short_message : message.type;
      if (sends()) {
        send(message.values.data(), sent, MPI_COMM_WORLD, partner());
        MPI_Recv(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        continue;
      }
      const ReturnErrors world(MPI_COMM_WORLD), self(MPI_COMM_SELF);
      const auto packed_before = packed_messages();
      std::vector<int> incoming(static_cast<std::size_t>(2 * half + gap), -1), wanted = incoming;
      MPI_Status status;
      const int code =
          taking(incoming.data(), does_not_fit ? too_short : two_blocks, MPI_COMM_WORLD, partner(), &status);
      EXPECT_EQ(does_not_fit ? MPI_ERR_TRUNCATE : MPI_SUCCESS, error_class(code));
      if (may_choose_slots() && taking != receive_matched) {
        EXPECT_EQ(packed_before, packed_messages());
      }
      if (!does_not_fit) {
        const std::vector<int> packed = is_short ? picked(message.values, 120, 1, 2) : message.packed(blocks);
        const std::vector<int> arrived(packed.begin(), packed.begin() + std::min<std::ptrdiff_t>(half, packed.size()));
        std::copy(arrived.begin(), arrived.end(), wanted.begin());
        if (packed.size() > static_cast<std::size_t>(half))
          std::copy(packed.begin() + half, packed.end(), wanted.begin() + half + gap);
        EXPECT_TRUE(wanted == incoming) << time;
        int count = 0;
        MPI_Get_elements(&status, MPI_INT, &count);
        EXPECT_EQ(static_cast<int>(packed.size()), count);
      }
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD);
    }
  }
  if (may_choose_slots() || uses_slots()) {
    EXPECT_LT(slots_before + 5 * times / 3, slots_messages());
  }
}

/// As benchmarks do, though MPI forbids: what arrives is anybody's guess, but every header must be found.
TEST(SlotsScattered, WindowsOfReceivesIntoOnePlaceLoseNone) {
  constexpr int blocks = 20'000, half = blocks * length / 2, gap = 5, window = 8, times = 20;
  const Strided message(blocks);
  const Owned two_blocks(strided(2, half, half + gap));
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const std::uint64_t before = slots_messages();
  std::vector<int> incoming(static_cast<std::size_t>(2 * half + gap), -1);
  for (int time = 0; time < times; ++time) {
    std::array<MPI_Request, window> requests;
    for (MPI_Request& request : requests) {
      if (sends()) MPI_Isend(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD, &request);
      if (!sends()) MPI_Irecv(incoming.data(), 1, two_blocks, partner(), tag, MPI_COMM_WORLD, &request);
    }
    MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
  }
  const std::uint64_t mine = slots_messages() - before;
  std::uint64_t others = 0;
  MPI_Sendrecv(&mine, 1, MPI_UINT64_T, partner(), tag, &others, 1, MPI_UINT64_T, partner(), tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  EXPECT_EQ(others, mine);
  if (may_choose_slots() || uses_slots()) {
    EXPECT_LT(0u, mine);
  }
}

/// Are headers spoken here, whatever is chosen?
bool may_speak() { return may_choose_slots() || uses_slots(); }

/// While it lives, the sender's messages go by slots, and the receiver's are the library's.
class ScatteredSlots {
 public:
  ScatteredSlots() { force(sends() ? "slots" : "native"); }
  ~ScatteredSlots() { force(std::getenv("GAPLESS_SCHEME")); }
  ScatteredSlots(const ScatteredSlots&) = delete;
  ScatteredSlots& operator=(const ScatteredSlots&) = delete;

 private:
  static void force(const char* scheme) {
    const auto function = reinterpret_cast<void (*)(const char*)>(core_function("gapless_transfer_force_scheme"));
    if (function != nullptr) function(scheme);
  }
};

/// A persistent request has the datatype analysed at once, where the first uses of others are the library's.
void analyse(MPI_Datatype type) {
  MPI_Request request;
  MPI_Send_init(nullptr, 0, type, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
}

/// Of so many numbers, in two blocks.
struct TwoBlocks {
  int first, second;
  static constexpr int gap = 3;

  Owned type() const {
    const std::array<int, 2> lengths{first, second}, places{0, first + gap};
    MPI_Datatype made;
    MPI_Type_indexed(2, lengths.data(), places.data(), MPI_INT, &made);
    return Owned(made);
  }
  std::vector<int> empty() const { return std::vector<int>(static_cast<std::size_t>(first + gap + second), -1); }
  /// What the memory holds once these have arrived.
  std::vector<int> holding(const std::vector<int>& packed) const {
    std::vector<int> memory = empty();
    for (std::size_t i = 0; i < packed.size(); ++i)
      memory[i + (i < static_cast<std::size_t>(first) ? 0 : gap)] = packed[i];
    return memory;
  }
};

/// Headers, and messages of other sizes. `frees`: the datatype ends while its receives are under way.
void receive_by_all_ways(int first_block, int blocks, bool frees) {
  constexpr int pairs = 5;
  const ScatteredSlots forced;
  const int each = blocks * length;
  const TwoBlocks memory{first_block, each + 1 - first_block};
  const Strided message(blocks);
  const std::vector<int> packed = message.packed(blocks);
  analyse(message.type);
  for (int by = 0; by < completing_ways; ++by) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) return;
    const auto way = static_cast<Completing>(by);
    const std::uint64_t slots_before = slots_messages(), looked_at_before = receives_looked_at();
    if (sends()) {
      for (int k = 0; k < pairs; ++k) {
        MPI_Send(message.values.data(), 1, message.type, partner(), 2 * k, MPI_COMM_WORLD);
        MPI_Send(packed.data(), k, MPI_INT, partner(), 2 * k + 1, MPI_COMM_WORLD);
      }
    } else {
      std::vector<MPI_Request> requests(2 * pairs);
      std::vector<std::vector<int>> incoming(2 * pairs, memory.empty());
      MPI_Datatype named;
      MPI_Type_dup(memory.type(), &named);
      for (int k = 0; k < 2 * pairs; ++k) {
        const auto at = static_cast<std::size_t>(k);
        MPI_Irecv(incoming[at].data(), 1, named, partner(), k, MPI_COMM_WORLD, &requests[at]);
      }
      if (frees) MPI_Type_free(&named);
      const auto sent = [&](int k) { return k % 2 == 0 ? each : k / 2; };
      const int failed = complete(way, requests, [&](int k, const MPI_Status& status) {
        int count = -1;
        MPI_Get_elements(&status, MPI_INT, &count);
        EXPECT_EQ(sent(k), count) << name(way) << ' ' << k;
        EXPECT_EQ(k, status.MPI_TAG);
      });
      EXPECT_EQ(0, failed) << name(way);
      for (int k = 0; k < 2 * pairs; ++k)
        EXPECT_TRUE(memory.holding({packed.begin(), packed.begin() + sent(k)}) == incoming[static_cast<std::size_t>(k)])
            << name(way) << ' ' << k;
      if (!frees) MPI_Type_free(&named);
      // But for the first use of the datatype, and for places that are taken for one another's.
      const bool is_long = each * sizeof(int) >= 4096;
      if (may_speak() && !is_long) {
        EXPECT_LE(looked_at_before + pairs, receives_looked_at());
      }
    }
    if (may_speak()) {
      EXPECT_EQ(slots_before + pairs, slots_messages());
    }
  }
}

constexpr int some_blocks = 1000 / length, many_blocks = 20'000 / length;

TEST(SlotsScattered, NonblockingReceivers) { receive_by_all_ways(some_blocks, some_blocks, false); }

/// Headers, and messages of other sizes, to receives that end in their call.
TEST(SlotsScattered, BlockingReceivers) {
  constexpr int each = some_blocks * length, messages = 10;
  const ScatteredSlots forced;
  const Strided message(some_blocks);
  const std::vector<int> packed = message.packed(some_blocks);
  analyse(message.type);
  for (const int first_block : {some_blocks, 1}) {
    const TwoBlocks memory{first_block, each + 1 - first_block};
    const Owned type = memory.type();
    analyse(type);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) return;
    const std::uint64_t slots_before = slots_messages(), packed_before = packed_messages();
    for (int k = 0; k < messages; ++k) {
      const int others = k / 2, wanted = k % 2 == 0 ? each : others;
      if (sends() && k % 2 == 0) MPI_Send(message.values.data(), 1, message.type, partner(), k, MPI_COMM_WORLD);
      if (sends() && k % 2 != 0) MPI_Send(packed.data(), others, MPI_INT, partner(), k, MPI_COMM_WORLD);
      if (sends()) continue;
      std::vector<int> incoming = memory.empty();
      MPI_Status status;
      EXPECT_EQ(MPI_SUCCESS, MPI_Recv(incoming.data(), 1, type, partner(), k, MPI_COMM_WORLD, &status));
      int count = -1;
      MPI_Get_elements(&status, MPI_INT, &count);
      EXPECT_EQ(wanted, count) << k;
      EXPECT_EQ(k, status.MPI_TAG);
      EXPECT_TRUE(memory.holding({packed.begin(), packed.begin() + wanted}) == incoming) << k;
    }
    if (may_speak()) {
      EXPECT_EQ(slots_before + messages / 2, slots_messages());
      EXPECT_EQ(packed_before, packed_messages());
    }
  }
}

/// What a header begins with does not fit into the first block.
TEST(SlotsScattered, NonblockingReceiversWithAShortFirstBlock) { receive_by_all_ways(1, some_blocks, false); }

TEST(SlotsScattered, NonblockingReceiversOfLongMessages) { receive_by_all_ways(1000, many_blocks, false); }

TEST(SlotsScattered, DatatypesFreedBeforeTheReceiversEnd) {
  receive_by_all_ways(some_blocks, some_blocks, true);
  receive_by_all_ways(1000, many_blocks, true);
}

/// A persistent receive into the same memory that is not started is in nobody's way.
TEST(SlotsScattered, PersistentReceiversOfTheSameMemory) {
  const ScatteredSlots forced;
  const Strided message(many_blocks);
  analyse(message.type);
  const Receive by_request = [](void* memory, MPI_Datatype type, MPI_Comm communicator, int from, MPI_Status* status) {
    MPI_Request persistent, request;
    MPI_Recv_init(memory, 1, type, from, tag + 1, communicator, &persistent);
    MPI_Irecv(memory, 1, type, from, tag, communicator, &request);
    MPI_Wait(&request, status);
    MPI_Request_free(&persistent);
  };
  const std::uint64_t packed = packed_messages();
  for (int times = 0; times < 3; ++times) pass(many_blocks, send, by_request, MPI_COMM_WORLD, -1);
  if (has_partner() && !sends() && may_speak()) {
    EXPECT_EQ(packed, packed_messages());
  }
}

/// Nothing is fetched of a message that does not fit; its header is not taken for that of the next one, which is empty.
TEST(SlotsScattered, AHeaderOfAMessageThatDoesNotFitIsNotTakenTwice) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const ReturnErrors world(MPI_COMM_WORLD);
  const ReturnErrors self(MPI_COMM_SELF);
  const ScatteredSlots forced;
  const Strided message(some_blocks);
  analyse(message.type);
  const TwoBlocks memory{100, some_blocks * length - 101};
  const Owned type = memory.type();
  std::vector<int> incoming = memory.empty();
  for (int time = 0; time < 4; ++time) {
    if (sends()) {
      MPI_Send(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD);
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag, MPI_COMM_WORLD);
      continue;
    }
    for (const int wanted : {MPI_ERR_TRUNCATE, MPI_SUCCESS}) {
      MPI_Request request;
      MPI_Status status;
      MPI_Irecv(incoming.data(), 1, type, partner(), tag, MPI_COMM_WORLD, &request);
      EXPECT_EQ(wanted, error_class(MPI_Wait(&request, &status)));
      int count = -1;
      if (wanted == MPI_SUCCESS) MPI_Get_count(&status, MPI_BYTE, &count);
      EXPECT_EQ(wanted == MPI_SUCCESS ? 0 : -1, count);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  pass(131'072, send, receive, MPI_COMM_WORLD, -1);
}

}  // namespace
}  // namespace gapless::test
