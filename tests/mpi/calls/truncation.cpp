// Messages that are too long for their receive: MPI_ERR_TRUNCATE, and not a byte beside those that the receive names,
// whatever the two ends' datatypes are and whichever way the library moves messages of that length.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/packs_something.hpp"

namespace gapless::test {
namespace {

constexpr std::byte untouched{0x5a};
constexpr int tag = 3;

enum class How { recv, mrecv, sendrecv };

/// Rows of two bytes, one in every four.
MPI_Datatype pairs_of_bytes(int bytes) {
  MPI_Datatype type;
  MPI_Type_vector(bytes / 2, 2, 4, MPI_BYTE, &type);
  return type;
}

MPI_Datatype together(int bytes) {
  MPI_Datatype type;
  MPI_Type_contiguous(bytes, MPI_BYTE, &type);
  return type;
}

int receive(How how, void* memory, MPI_Datatype type, int from) {
  char nothing = 0;
  switch (how) {
    case How::recv:
      return MPI_Recv(memory, 1, type, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    case How::mrecv: {
      MPI_Message message;
      MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
      return MPI_Mrecv(memory, 1, type, &message, MPI_STATUS_IGNORE);
    }
    case How::sendrecv:
      break;
  }
  return MPI_Sendrecv(&nothing, 0, MPI_BYTE, MPI_PROC_NULL, tag, memory, 1, type, from, tag, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
}

class Truncation : public testing::TestWithParam<How> {
 protected:
  ReturnErrors world_{MPI_COMM_WORLD};

  /// Every rank sends `sent` bytes to the next one, which receives half of them. What an Isend sends stays as it is;
  /// MPI_Send is packed where that is chosen.
  void truncate(int bytes, MPI_Datatype (*sent_as)(int), MPI_Datatype (*received_as)(int), bool packs) {
    const Owned outgoing(sent_as(bytes));
    const Owned incoming(received_as(bytes / 2));
    std::vector<std::byte> source(static_cast<std::size_t>(2 * bytes), std::byte{7});
    // Longer than the whole message, so that the library's own overruns stay inside it.
    std::vector<std::byte> destination(static_cast<std::size_t>(4 * bytes), untouched);
    const int to = (rank() + 1) % size(), from = (rank() + size() - 1) % size();
    MPI_Request request = MPI_REQUEST_NULL;
    if (!packs) MPI_Isend(source.data(), 1, outgoing, to, tag, MPI_COMM_WORLD, &request);
    const bool sends_first = rank() == 0;
    if (packs && sends_first) MPI_Send(source.data(), 1, outgoing, to, tag, MPI_COMM_WORLD);
    EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(receive(GetParam(), destination.data(), incoming, from)));
    if (packs && !sends_first) MPI_Send(source.data(), 1, outgoing, to, tag, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (std::size_t k = 0; k < destination.size(); ++k) {
      const bool named = received_as == together ? k < static_cast<std::size_t>(bytes / 2)
                                                 : k < static_cast<std::size_t>(bytes) && k % 4 < 2;
      if (!named && destination[k] != untouched) {
        ADD_FAILURE() << "byte " << k << " of a receive of " << bytes / 2 << " bytes";
        break;
      }
    }
  }
};

const std::vector<int> lengths{8, 100, 1000, 4000, 8000, 8192, 20'000, 65'536, 300'000, 4'000'000};

TEST_P(Truncation, OfContiguousMessagesByNoncontiguousReceives) {
  for (const int bytes : lengths) truncate(bytes, together, pairs_of_bytes, false);
}

TEST_P(Truncation, OfNoncontiguousMessagesByNoncontiguousReceives) {
  for (const int bytes : lengths) truncate(bytes, pairs_of_bytes, pairs_of_bytes, false);
}

TEST_P(Truncation, OfPackedMessagesByNoncontiguousReceives) {
  if (size() == 1) GTEST_SKIP() << "a blocking send to oneself waits for the receive";
  const PacksSomething packs(lengths.size());
  for (const int bytes : lengths) truncate(bytes, pairs_of_bytes, pairs_of_bytes, true);
}

TEST_P(Truncation, OfPackedMessagesByContiguousReceives) {
  if (size() == 1) GTEST_SKIP() << "a blocking send to oneself waits for the receive";
  const PacksSomething packs(lengths.size());
  for (const int bytes : lengths) truncate(bytes, pairs_of_bytes, together, true);
}

/// A receive that is truncated takes nothing from the one behind it.
TEST_P(Truncation, LeavesTheNextMessageWhole) {
  const PacksSomething packs(lengths.size());
  const int to = (rank() + 1) % size(), from = (rank() + size() - 1) % size();
  for (const int bytes : lengths) {
    truncate(bytes, together, pairs_of_bytes, false);
    const Owned type(pairs_of_bytes(bytes));
    std::vector<std::byte> source(static_cast<std::size_t>(bytes), std::byte{9});
    std::vector<std::byte> destination(static_cast<std::size_t>(2 * bytes), untouched);
    MPI_Request request;
    MPI_Isend(source.data(), bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    EXPECT_EQ(MPI_SUCCESS, receive(GetParam(), destination.data(), type, from));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (std::size_t k = 0; k < destination.size(); ++k)
      wrong += destination[k] != (k % 4 < 2 ? std::byte{9} : untouched);
    EXPECT_EQ(0, wrong) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Receives, Truncation, testing::Values(How::recv, How::mrecv, How::sendrecv), [](const auto& how) {
      return std::string(how.param == How::recv ? "Recv" : how.param == How::mrecv ? "Mrecv" : "Sendrecv");
    });

}  // namespace
}  // namespace gapless::test
