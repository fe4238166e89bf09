// Receivers whose memory is contiguous, where a header lands in the program's own memory.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headers/partners.hpp"
#include "headers/slot_messages.hpp"
#include "support/completing.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

TEST(SlotsContiguous, Receivers) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  for (const int blocks : block_counts) {
    MPI_Barrier(MPI_COMM_WORLD);
    const Strided message(blocks);
    const std::uint64_t before = slots_messages();
    const auto bytes = static_cast<std::size_t>(blocks) * length * sizeof(int);
    std::vector<int> incoming(bytes / sizeof(int) + 1, -1);
    if (sends()) {
      MPI_Send(message.values.data(), 1, message.type, partner(), tag, MPI_COMM_WORLD);
    } else {
      MPI_Status status;
      EXPECT_EQ(MPI_SUCCESS, MPI_Recv(incoming.data(), static_cast<int>(incoming.size()), MPI_INT, partner(), tag,
                                      MPI_COMM_WORLD, &status));
      int got = 0;
      MPI_Get_count(&status, MPI_BYTE, &got);
      EXPECT_EQ(static_cast<int>(bytes), got);
      const std::vector<int> wanted = message.packed(blocks);
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), incoming.begin()));
      EXPECT_EQ(-1, incoming.back());
    }
    if (uses_slots()) {
      EXPECT_EQ(before + 1, slots_messages());
    }
  }
}

/// What the receives below name: so many numbers by a predefined datatype, or by one of the program's, which may end
/// while they are under way.
enum class Named { predefined, derived, freed };

void receive_by_all_ways(Named named, int pairs) {
  constexpr int blocks = 1000, each = blocks * length;
  const Strided message(blocks);
  const std::vector<int> packed = message.packed(blocks);
  for (int by = 0; by < completing_ways; ++by) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!has_partner()) return;
    const auto way = static_cast<Completing>(by);
    const std::uint64_t before = slots_messages(), promoted_before = receives_promoted();
    const auto messages = 2 * static_cast<std::size_t>(pairs);
    std::vector<MPI_Request> requests(messages);
    std::vector<std::vector<int>> incoming(messages, std::vector<int>(each + 1, -1));
    if (sends()) {
      for (int k = 0; k < pairs; ++k) {
        MPI_Send(message.values.data(), 1, message.type, partner(), 2 * k, MPI_COMM_WORLD);
        MPI_Send(packed.data(), k, MPI_INT, partner(), 2 * k + 1, MPI_COMM_WORLD);
      }
    } else {
      MPI_Datatype derived;
      MPI_Type_contiguous(each + 1, MPI_INT, &derived);
      MPI_Type_commit(&derived);
      for (int k = 0; k < 2 * pairs; ++k) {
        const auto at = static_cast<std::size_t>(k);
        const bool is_predefined = named == Named::predefined;
        MPI_Irecv(incoming[at].data(), is_predefined ? each + 1 : 1, is_predefined ? MPI_INT : derived, partner(), k,
                  MPI_COMM_WORLD, &requests[at]);
      }
      if (named == Named::freed) MPI_Type_free(&derived);
      const int failed = complete(way, requests, [&](int k, const MPI_Status& status) {
        const int sent = k % 2 == 0 ? each : k / 2;
        int count = -1;
        MPI_Get_count(&status, MPI_INT, &count);
        EXPECT_EQ(sent, count) << name(way) << ' ' << k;
        EXPECT_EQ(k, status.MPI_TAG);
      });
      EXPECT_EQ(0, failed) << name(way);
      for (int k = 0; k < 2 * pairs; ++k) {
        const auto at = static_cast<std::size_t>(k);
        const int sent = k % 2 == 0 ? each : k / 2;
        EXPECT_TRUE(std::equal(packed.begin(), packed.begin() + sent, incoming[at].begin())) << name(way) << ' ' << k;
        EXPECT_EQ(-1, incoming[at][static_cast<std::size_t>(sent)]);
      }
      if (named != Named::freed) MPI_Type_free(&derived);
    }
    if (uses_slots()) {
      EXPECT_EQ(before + static_cast<unsigned>(pairs), slots_messages());
    }
    // Each completing call looks at the receives where they are; a call that only asks does not. One pending message in
    // the list makes the others such messages: the first receive of a new datatype, or one of so many that the table
    // has no place for it.
    constexpr std::size_t few = 16;
    if (named == Named::predefined && messages <= few && way <= Completing::test_some) {
      EXPECT_EQ(promoted_before, receives_promoted()) << name(way);
    }
  }
}

/// Contiguous receives under all calls that complete them, into which headers land, and messages of other sizes.
TEST(SlotsContiguous, NonblockingReceivers) { receive_by_all_ways(Named::predefined, 5); }

TEST(SlotsContiguous, NonblockingReceiversOfADerivedDatatype) { receive_by_all_ways(Named::derived, 5); }

/// More than a call keeps without allocating memory.
TEST(SlotsContiguous, ManyNonblockingReceivers) { receive_by_all_ways(Named::predefined, 40); }

TEST(SlotsContiguous, DatatypesFreedBeforeTheReceiversEnd) { receive_by_all_ways(Named::freed, 5); }

/// One of several that are waited for at once is too long.
TEST(SlotsContiguous, ReceiversWaitedForTogether) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const ReturnErrors world(MPI_COMM_WORLD);
  const ReturnErrors self(MPI_COMM_SELF);
  constexpr int blocks = 1000, each = blocks * length;
  const Strided message(blocks);
  const std::vector<int> packed = message.packed(blocks);
  if (sends()) {
    for (int k = 0; k < 3; ++k) MPI_Send(message.values.data(), 1, message.type, partner(), k, MPI_COMM_WORLD);
    return;
  }
  std::vector<MPI_Request> requests(3);
  std::vector<MPI_Status> statuses(3);
  std::vector<std::vector<int>> incoming(3, std::vector<int>(each, -1));
  for (int k = 0; k < 3; ++k) {
    const auto at = static_cast<std::size_t>(k);
    MPI_Irecv(incoming[at].data(), k == 1 ? each - 1 : each, MPI_INT, partner(), k, MPI_COMM_WORLD, &requests[at]);
  }
  EXPECT_EQ(MPI_ERR_IN_STATUS, error_class(MPI_Waitall(3, requests.data(), statuses.data())));
  for (const std::size_t k : {std::size_t{0}, std::size_t{2}}) {
    // After an error MPICH does not wait for the others.
    if (statuses[k].MPI_ERROR == MPI_ERR_PENDING) {
      statuses[k].MPI_ERROR = MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
    }
    EXPECT_EQ(MPI_SUCCESS, statuses[k].MPI_ERROR);
    EXPECT_TRUE(requests[k] == MPI_REQUEST_NULL);
    EXPECT_TRUE(packed == incoming[k]);
  }
  EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(statuses[1].MPI_ERROR));
  EXPECT_EQ(-1, incoming[1].back());
}

/// Contiguous receives, one of which may be too long for the program's memory, beside what is unpacked and what is
/// sent.
void wait_beside_others(bool is_one_too_long) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  const ReturnErrors world(MPI_COMM_WORLD);
  const ReturnErrors self(MPI_COMM_SELF);
  constexpr int blocks = 1000, each = blocks * length, contiguous = 3, all = 2 * (contiguous + 1);
  const Strided message(blocks);
  const std::vector<int> packed = message.packed(blocks);
  std::vector<MPI_Request> requests(all);
  std::vector<MPI_Status> statuses(all);
  std::vector<std::vector<int>> incoming(contiguous, std::vector<int>(each, -1));
  std::vector<int> strided_incoming(message.values.size(), -1);
  const std::uint64_t before = slots_messages();
  for (int k = 0; k < contiguous; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const int count = is_one_too_long && k == 1 ? each - 1 : each;
    MPI_Irecv(incoming[at].data(), count, MPI_INT, partner(), k, MPI_COMM_WORLD, &requests[at]);
  }
  MPI_Irecv(strided_incoming.data(), 1, message.type, partner(), contiguous, MPI_COMM_WORLD, &requests[contiguous]);
  for (int k = 0; k <= contiguous; ++k) {
    MPI_Isend(message.values.data(), 1, message.type, partner(), k, MPI_COMM_WORLD,
              &requests[static_cast<std::size_t>(contiguous + 1 + k)]);
  }
  const int code = MPI_Waitall(all, requests.data(), statuses.data());
  EXPECT_EQ(is_one_too_long ? MPI_ERR_IN_STATUS : MPI_SUCCESS, error_class(code));
  for (std::size_t k = 0; k < requests.size(); ++k) {
    const int error = code == MPI_SUCCESS ? MPI_SUCCESS : error_class(statuses[k].MPI_ERROR);
    if (is_one_too_long && k == 1) {
      EXPECT_EQ(MPI_ERR_TRUNCATE, error);
      continue;
    }
    // After an error MPICH does not wait for the others.
    EXPECT_TRUE(error == MPI_SUCCESS || error == MPI_ERR_PENDING) << error;
    if (error == MPI_ERR_PENDING) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&requests[k], &statuses[k]));
    }
    EXPECT_TRUE(requests[k] == MPI_REQUEST_NULL);
    if (k > contiguous) continue;
    EXPECT_EQ(static_cast<int>(k), statuses[k].MPI_TAG);
    int got = 0;
    MPI_Get_count(&statuses[k], MPI_INT, &got);
    EXPECT_EQ(each, got);
    EXPECT_TRUE(k == contiguous || packed == incoming[k]);
  }
  EXPECT_TRUE(strided_incoming == placed(std::vector<int>(message.values.size(), -1), packed, length, stride));
  if (uses_slots()) {
    EXPECT_EQ(before + all, slots_messages());
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(SlotsContiguous, ReceiversWaitedForBesideOthers) { wait_beside_others(false); }

TEST(SlotsContiguous, ReceiversWaitedForBesideOthersThatAreTooLong) { wait_beside_others(true); }

/// A header does not end with a whole element of records of a double and a byte.
TEST(SlotsContiguous, ReceiversOfOddElements) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  constexpr int records = 500, apart = 16, together = 9;
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Datatype fields[2] = {MPI_DOUBLE, MPI_BYTE};
  MPI_Datatype packed, loose;
  MPI_Type_create_struct(2, lengths, places, fields, &packed);
  MPI_Type_create_resized(packed, 0, together, &loose);
  const Owned record(loose);
  MPI_Type_create_hvector(records, 1, apart, packed, &loose);
  const Owned sent(loose);
  MPI_Type_free(&packed);
  std::vector<std::byte> outgoing(records * apart), incoming(records * together + 1, std::byte{1});
  for (std::size_t k = 0; k < outgoing.size(); ++k) outgoing[k] = static_cast<std::byte>(k * 7);
  const std::uint64_t before = slots_messages();
  if (sends()) {
    MPI_Send(outgoing.data(), 1, sent, partner(), tag, MPI_COMM_WORLD);
  } else {
    MPI_Status status;
    MPI_Recv(incoming.data(), records, record, partner(), tag, MPI_COMM_WORLD, &status);
    int count = 0;
    MPI_Get_count(&status, record, &count);
    EXPECT_EQ(records, count);
    int wrong = 0;
    for (std::size_t k = 0; k < records * together; ++k)
      wrong += incoming[k] != outgoing[k / together * apart + k % together];
    EXPECT_EQ(0, wrong);
    EXPECT_EQ(std::byte{1}, incoming.back());
  }
  if (uses_slots()) {
    EXPECT_EQ(before + 1, slots_messages());
  }
}

void expect_long_doubles_arrive(MPI_Datatype number) {
  constexpr int records = 32;
  const int lengths[2] = {0, 3}, places[2] = {-3, -3};
  MPI_Datatype three, rows;
  MPI_Type_indexed(2, lengths, places, number, &three);
  MPI_Type_vector(2, 4, 4, three, &rows);
  const Owned record(rows);
  MPI_Type_free(&three);
  constexpr std::size_t numbers = std::size_t{records} * 8 * 3 * 2;
  std::vector<long double> outgoing(2 * numbers), incoming(numbers + 6, -1);
  for (std::size_t k = 0; k < outgoing.size(); ++k) outgoing[k] = static_cast<long double>(k) / 3;
  MPI_Datatype spaced;
  MPI_Type_vector(static_cast<int>(numbers / 2), 1, 2, number, &spaced);
  const Owned sent(spaced);
  const std::uint64_t before = slots_messages();
  if (sends()) {
    for (int times = 0; times < 2; ++times) MPI_Send(outgoing.data(), 1, sent, partner(), tag, MPI_COMM_WORLD);
  } else {
    for (const bool replaces : {false, true}) {
      MPI_Status status;
      std::fill(incoming.begin(), incoming.end(), -1.0L);
      long double* const memory = incoming.data() + 6;
      if (replaces) {
        MPI_Sendrecv_replace(memory, records, record, MPI_PROC_NULL, tag, partner(), tag, MPI_COMM_WORLD, &status);
      } else {
        MPI_Recv(memory, records, record, partner(), tag, MPI_COMM_WORLD, &status);
      }
      int count = 0, wrong = 0;
      MPI_Get_count(&status, record, &count);
      EXPECT_EQ(records, count);
      for (std::size_t k = 0; k < numbers; ++k) wrong += incoming[k] != outgoing[k / 2 * 4 + k % 2];
      EXPECT_EQ(0, wrong);
    }
  }
  if (uses_slots()) {
    EXPECT_EQ(before + 2, slots_messages());
  }
}

/// What is contiguous need not be so for the library, and one that moves long doubles one by one leaves out their
/// padding.
TEST(SlotsContiguous, ReceiversOfLongDoubles) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  for (const MPI_Datatype number : {MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX})
    expect_long_doubles_arrive(number);
}

}  // namespace
}  // namespace gapless::test
