// Messages that the receiver's GPU reads in the program's memory at the sender: the right bytes between every two kinds
// of layout and in every kind of call, by counts that they were really read there.
#include "headers/on_gpu/pull_messages.hpp"

namespace gapless::test {
namespace {

TEST_F(Pulls, BetweenEveryTwoLayouts) {
  const std::uint64_t before = fetched();
  for (const Amount& amount : amounts) {
    use(amount);
    for (const Shape& from : shapes_)
      for (const Shape& into : shapes_) pass(from, into);
  }
  // A receiver that comes late, on a machine with much to do, finds some copied out.
  if (has_partner() && !sends() && is_forced()) {
    EXPECT_GT(fetched(), before + 40);
  }
}

TEST_F(Pulls, LessThanIsReceived) {
  for (const Amount& amount : amounts) {
    use(amount);
    for (const Shape& from : shapes_) {
      if (from.count == 1) continue;
      Shape less = from;
      less.count -= from.name == "contiguous" ? 4 : 1;
      less.places.resize(less.places.size() - 4);
      if (less.places.size() < 256) continue;  // goes another way
      for (const Shape& into : shapes_) pass(less, into);
    }
  }
}

TEST_F(Pulls, InEveryKindOfCall) {
  const std::vector<SendShape> sendings{[](const void* memory, int count, MPI_Datatype type) {
                                          MPI_Request request;
                                          MPI_Isend(memory, count, type, partner(), tag, MPI_COMM_WORLD, &request);
                                          MPI_Wait(&request, MPI_STATUS_IGNORE);
                                        },
                                        [](const void* memory, int count, MPI_Datatype type) {
                                          MPI_Request request;
                                          MPI_Send_init(memory, count, type, partner(), tag, MPI_COMM_WORLD, &request);
                                          MPI_Start(&request);
                                          MPI_Wait(&request, MPI_STATUS_IGNORE);
                                          MPI_Request_free(&request);
                                        }};
  const std::vector<ReceiveShape> receivings{[](void* memory, int count, MPI_Datatype type, MPI_Status* status) {
                                               MPI_Request request;
                                               MPI_Irecv(memory, count, type, partner(), tag, MPI_COMM_WORLD, &request);
                                               for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, status);
                                             },
                                             [](void* memory, int count, MPI_Datatype type, MPI_Status* status) {
                                               MPI_Request request;
                                               MPI_Recv_init(memory, count, type, partner(), tag, MPI_COMM_WORLD,
                                                             &request);
                                               MPI_Start(&request);
                                               MPI_Waitall(1, &request, status);
                                               MPI_Request_free(&request);
                                             },
                                             [](void* memory, int count, MPI_Datatype type, MPI_Status* status) {
                                               MPI_Message found;
                                               MPI_Mprobe(partner(), MPI_ANY_TAG, MPI_COMM_WORLD, &found, status);
                                               MPI_Mrecv(memory, count, type, &found, status);
                                             },
                                             [](void* memory, int count, MPI_Datatype type, MPI_Status* status) {
                                               MPI_Probe(partner(), tag, MPI_COMM_WORLD, status);
                                               receive(memory, count, type, status);
                                             }};
  for (const Amount& amount : amounts) {
    use(amount);
    for (const SendShape& by : sendings)
      for (const ReceiveShape& take : receivings) pass(shapes_[1], shapes_[4], by, take);
  }
}

TEST_F(Pulls, BothWaysAtOnce) {
  if (!has_partner()) return;
  for (const Amount& amount : amounts) {
    use(amount);
    const Shape &from = shapes_[1], &into = shapes_[4];
    const int mine = 1000 + rank(), theirs = 1000 + partner();
    memory_.set(mine);
    Memory incoming(receivers_first);
    for (int times = 0; times < 8; ++times) {
      const std::uint64_t before = fetched();
      if (times % 2 == 0) {
        MPI_Sendrecv(memory_.at(from), 1, from.type, partner(), tag, incoming.at(into), 1, into.type, partner(), tag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Request requests[2];
        MPI_Irecv(incoming.at(into), 1, into.type, partner(), tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(memory_.at(from), 1, from.type, partner(), tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      }
      EXPECT_TRUE(incoming.with(into, theirs, from, from.places.size()) == incoming.found());
      incoming.set(receivers_first);
      // The other way has to be introduced first; a receiver that comes late finds a copy.
      EXPECT_LE(fetched(), before + 1);
    }
  }
}

/// All of an exchange's messages are waited for together, and none is packed.
TEST_F(Pulls, ManyAtOnce) {
  if (!has_partner()) return;
  constexpr int messages = 26;
  use(amounts.front());
  const std::uint64_t before = fetched();
  const long launches = pulls() && gpu_fails_on_request() ? gpu_count("launches") : 0;
  std::vector<MPI_Request> requests(messages);
  for (int k = 0; k < messages; ++k) {
    const Shape& shape = shapes_[static_cast<std::size_t>(1 + k % 4)];
    int* const place = memory_.at(shape) + 30'000 * k;
    MPI_Request* const request = &requests[static_cast<std::size_t>(k)];
    if (sends()) MPI_Isend(place, shape.count, shape.type, partner(), tag, MPI_COMM_WORLD, request);
    if (!sends()) MPI_Irecv(place, shape.count, shape.type, partner(), tag, MPI_COMM_WORLD, request);
  }
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE));
  const long launched = pulls() && gpu_fails_on_request() ? gpu_count("launches") - launches : 0;
  if (sends()) {
    EXPECT_LE(launched, static_cast<long>(copied_out()));
  } else {
    std::vector<int> expected = counting(memory_ints, receivers_first);
    for (int k = 0; k < messages; ++k) {
      const Shape& shape = shapes_[static_cast<std::size_t>(1 + k % 4)];
      for (const int place : shape.places)
        expected[static_cast<std::size_t>(place + 30'000 * k)] = senders_first + place + 30'000 * k;
    }
    EXPECT_TRUE(expected == memory_.found());
    EXPECT_LE(launched, is_forced() ? 4 : messages) << "one launch carries all that goes from layout to layout";
    EXPECT_LE(fetched(), before + messages);
  }
}

TEST_F(Pulls, IntoHostMemory) {
  if (!has_partner()) return;
  for (const Amount& amount : amounts) {
    use(amount);
    for (const Shape& shape : shapes_) {
      if (sends()) {
        send(memory_.at(shape), shape.count, shape.type);
        continue;
      }
      std::vector<int> incoming = counting(memory_ints, receivers_first);
      receive(incoming.data() + shape.origin, shape.count, shape.type, MPI_STATUS_IGNORE);
      EXPECT_TRUE(memory_.with(shape, senders_first, shape, shape.places.size()) == incoming) << shape.name;
    }
  }
}

/// Each start sends what the memory holds then.
TEST_F(Pulls, PersistentSendsAreStartedAgain) {
  if (!has_partner()) return;
  constexpr int rounds = 14;
  for (const Amount& amount : amounts) {
    use(amount);
    const Shape &from = shapes_[4], &into = shapes_[1];
    MPI_Request request = MPI_REQUEST_NULL;
    if (sends()) MPI_Send_init(memory_.at(from), 1, from.type, partner(), tag, MPI_COMM_WORLD, &request);
    for (int round = 0; round < rounds; ++round) {
      if (sends()) {
        memory_.set(1000 * round);
        MPI_Start(&request);
        complete_persistent(&request, round);
        memory_.set(-7);
        MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        receive(memory_.at(into), 1, into.type, MPI_STATUS_IGNORE);
        EXPECT_TRUE(memory_.with(into, 1000 * round, from, from.places.size()) == memory_.found()) << round;
        memory_.set(receivers_first);
        MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
      }
    }
    if (sends()) MPI_Request_free(&request);
    memory_.set(sends() ? senders_first : receivers_first);
  }
}

}  // namespace
}  // namespace gapless::test
