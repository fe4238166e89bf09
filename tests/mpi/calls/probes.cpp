// What a program asks of the status of a message before, after and instead of receiving it: the same whether the
// message was packed at one end, at both, or at none.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

int before() { return (rank() + size() - 1) % size(); }
int after() { return (rank() + 1) % size(); }

/// A double behind an int, repeated.
MPI_Datatype mixed() {
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {0, 16};
  const MPI_Datatype fields[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype fields_type, result;
  MPI_Type_create_struct(2, lengths, places, fields, &fields_type);
  MPI_Type_create_resized(fields_type, 0, 32, &result);
  MPI_Type_free(&fields_type);
  return result;
}

struct Shape {
  const char* name;
  std::function<MPI_Datatype()> make;
  int count;         ///< elements sent
  int room;          ///< elements received at most
  std::size_t ints;  ///< that `room` of them span
  int basic;         ///< basic elements of what is sent
  int bytes;
};
const std::vector<Shape> shapes{
    {"short", [] { return strided(20, 2, 5); }, 1, 3, 300, 40, 160},
    {"part of what fits", [] { return strided(20, 1, 3); }, 4, 9, 540, 80, 320},
    {"long", [] { return strided(30'000, 1, 2); }, 2, 2, 120'000, 60'000, 240'000},
    {"mixed", mixed, 50, 60, 480, 100, 600},
    {"none", [] { return strided(20, 2, 5); }, 0, 3, 300, 0, 0},
};

/// What is asked of every status.
void expect_status(const Shape& shape, MPI_Datatype type, const MPI_Status& status) {
  EXPECT_EQ(before(), status.MPI_SOURCE);
  EXPECT_EQ(3, status.MPI_TAG);
  int count = -1;
  EXPECT_EQ(MPI_SUCCESS, MPI_Get_count(&status, type, &count));
  EXPECT_EQ(shape.count, count);
  EXPECT_EQ(MPI_SUCCESS, MPI_Get_elements(&status, type, &count));
  EXPECT_EQ(shape.basic, count);
  MPI_Count elements = -1;
  EXPECT_EQ(MPI_SUCCESS, MPI_Get_elements_x(&status, type, &elements));
  EXPECT_EQ(shape.basic, elements);
  EXPECT_EQ(MPI_SUCCESS, MPI_Get_count(&status, MPI_BYTE, &count));
  EXPECT_EQ(shape.bytes, count);
  EXPECT_EQ(MPI_SUCCESS, MPI_Get_count(&status, MPI_PACKED, &count));
  EXPECT_EQ(shape.bytes, count);
}

/// Sends to the next rank, and receives from the one before by `receive(memory, room, type, expect)`.
using Receive = std::function<void(void*, int, MPI_Datatype, const std::function<void(const MPI_Status&)>&)>;
void for_all(const Receive& receive) {
  for (const Ends& ends : all_ends()) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(text(ends) + ", " + shape.name);
      const Owned type(shape.make());
      Ints outgoing(counting(shape.ints, rank()), ends.from_gpu),
          incoming(std::vector<int>(shape.ints, -1), ends.to_gpu);
      MPI_Request request;
      MPI_Isend(outgoing.data(), shape.count, type, after(), 3, MPI_COMM_WORLD, &request);
      receive(incoming.data(), shape.room, type, [&](const MPI_Status& status) { expect_status(shape, type, status); });
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      // Its bytes are what the library's own pack makes of them.
      const std::vector<int> sent = counting(shape.ints, before()), received = incoming.values();
      std::vector<std::byte> wanted(static_cast<std::size_t>(shape.bytes) + 1), got(wanted.size());
      int position = 0;
      GAPLESS_TEST_NATIVE(Pack)
      (sent.data(), shape.count, type, wanted.data(), shape.bytes, &position, MPI_COMM_WORLD);
      position = 0;
      GAPLESS_TEST_NATIVE(Pack)
      (received.data(), shape.count, type, got.data(), shape.bytes, &position, MPI_COMM_WORLD);
      EXPECT_TRUE(wanted == got);
    }
  }
}

TEST(Probes, ThenReceive) {
  const auto packed = packed_messages();
  for_all([](void* memory, int room, MPI_Datatype type, const auto& expect) {
    MPI_Status status;
    EXPECT_EQ(MPI_SUCCESS, MPI_Probe(before(), MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    expect(status);
    EXPECT_EQ(MPI_SUCCESS, MPI_Recv(memory, room, type, status.MPI_SOURCE, 3, MPI_COMM_WORLD, &status));
    expect(status);
  });
  if (is_everything_packed()) {
    EXPECT_GT(packed_messages(), packed);
  }
}

TEST(Probes, ThatDoNotWait) {
  for_all([](void* memory, int room, MPI_Datatype type, const auto& expect) {
    MPI_Status status;
    for (int flag = 0; flag == 0;) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, &status));
    }
    expect(status);
    MPI_Request request;
    EXPECT_EQ(MPI_SUCCESS, MPI_Irecv(memory, room, type, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request));
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, &status));
    expect(status);
  });
}

TEST(Probes, ThatMatch) {
  for (const bool waits : {true, false}) {
    for_all([waits](void* memory, int room, MPI_Datatype type, const auto& expect) {
      MPI_Status status;
      MPI_Message message = MPI_MESSAGE_NULL;
      int flag = 0;
      if (waits) {
        EXPECT_EQ(MPI_SUCCESS, MPI_Mprobe(before(), 3, MPI_COMM_WORLD, &message, &status));
      }
      while (!waits && flag == 0) {
        EXPECT_EQ(MPI_SUCCESS, MPI_Improbe(before(), MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status));
      }
      expect(status);
      MPI_Request request;
      EXPECT_EQ(MPI_SUCCESS, MPI_Imrecv(memory, room, type, &message, &request));
      EXPECT_EQ(MPI_MESSAGE_NULL, message);
      int complete = 0;
      while (complete == 0) EXPECT_EQ(MPI_SUCCESS, MPI_Request_get_status(request, &complete, &status));
      expect(status);
      EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, &status));
      expect(status);
    });
  }
}

TEST(Probes, OfPersistentMessages) {
  for_all([](void* memory, int room, MPI_Datatype type, const auto& expect) {
    MPI_Status status;
    MPI_Request request;
    EXPECT_EQ(MPI_SUCCESS, MPI_Probe(before(), 3, MPI_COMM_WORLD, &status));
    expect(status);
    MPI_Recv_init(memory, room, type, before(), 3, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, &status));
    expect(status);
    MPI_Request_free(&request);
  });
}

/// Elements that go backwards in memory, sent to oneself past gapless, and received by a matched receive.
TEST(MatchedReceives, ElementsOfNegativeExtentFromTheLibraryItself) {
  constexpr int room = 6000, step = 3;
  MPI_Datatype handle;
  MPI_Type_create_resized(MPI_INT, 0, -step * static_cast<MPI_Aint>(sizeof(int)), &handle);
  const Owned backwards(handle);
  const auto isend = GAPLESS_TEST_NATIVE(Isend);
  const std::vector<int> from = counting(room);
  for (const int count : {1, 2, 17, 256, 1999}) {
    std::vector<int> into(room, -1), wanted(room, -1);
    for (int k = 0; k < count; ++k) wanted[room - 1 - k * step] = from[room - 1 - k * step];
    const std::uint64_t packed = packed_messages();
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    isend(from.data() + room - 1, count, backwards, 0, 5, MPI_COMM_SELF, &request);
    MPI_Mprobe(0, 5, MPI_COMM_SELF, &message, &status);
    EXPECT_EQ(MPI_SUCCESS, MPI_Mrecv(into.data() + room - 1, count, backwards, &message, &status));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int received = -1;
    MPI_Get_count(&status, backwards, &received);
    EXPECT_EQ(count, received);
    EXPECT_EQ(wanted, into) << count;
    // A single int is contiguous, and left to the library.
    if (is_everything_packed()) {
      EXPECT_EQ(packed + (count > 1 ? 1 : 0), packed_messages()) << count;
    }
  }
}

}  // namespace
}  // namespace gapless::test
