// Messages that the receiver's GPU would read in the program's memory at the sender, where something comes between: a
// receiver that is late or does not come, truncation, cancelling, memory and datatypes that are freed.
#include <chrono>
#include <memory>
#include <thread>

#include "headers/on_gpu/pull_messages.hpp"
#include "support/cancelled.hpp"

namespace gapless::test {
namespace {

/// The receiver has posted its receive, and waits for something that the sender does after its send.
TEST_F(Pulls, SendersWaitForNobodyWhoDoesNotFetch) {
  for (const Amount& amount : amounts) {
    use(amount);
    const Shape &from = shapes_[1], &into = shapes_[4];
    const std::uint64_t before = copied_out();
    MPI_Request request = MPI_REQUEST_NULL;
    if (has_partner() && sends()) {
      MPI_Isend(memory_.at(from), 1, from.type, partner(), tag, MPI_COMM_WORLD, &request);
      if (pulls()) MPI_Wait(&request, MPI_STATUS_IGNORE);  // a rendezvous of the library's would wait
      if (pulls()) memory_.set(0);                         // the program has its memory back
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (is_forced() || !pulls()) {
        EXPECT_EQ(before + (pulls() ? 1 : 0), copied_out());
      }
      memory_.set(senders_first);
    } else if (has_partner()) {
      MPI_Irecv(memory_.at(into), 1, into.type, partner(), tag, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT_TRUE(memory_.with(into, senders_first, from, from.places.size()) == memory_.found());
      memory_.set(receivers_first);
    } else {
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

/// More messages than anybody keeps words of, of which nobody receives one yet: all arrive, in order.
TEST_F(Pulls, UnexpectedMessagesPileUp) {
  if (!has_partner()) return;
  constexpr int messages = 100;
  use(amounts.front());
  const Shape &from = shapes_[1], &into = shapes_[0];
  if (sends()) {
    std::vector<MPI_Request> requests(messages);
    for (int k = 0; k < messages; ++k)
      MPI_Isend(memory_.at(from) + k, 1, from.type, partner(), tag, MPI_COMM_WORLD,
                &requests[static_cast<std::size_t>(k)]);
    MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
    MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE);
  } else {
    MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < messages; ++k) {
      receive(memory_.at(into), into.count, into.type, MPI_STATUS_IGNORE);
      EXPECT_TRUE(memory_.with(into, senders_first + k, from, from.places.size()) == memory_.found()) << k;
    }
  }
}

/// What does not fit is an error of the receiver alone, and nothing of its memory changes.
TEST_F(Pulls, Truncation) {
  if (!has_partner()) return;
  for (const Amount& amount : amounts) {
    use(amount);
    const Shape& shape = shapes_[1];
    for (int times = 0; times < 4; ++times) {
      if (sends()) {
        send(memory_.at(shape), 1, shape.type);
      } else {
        const int code =
            MPI_Recv(memory_.at(shape), amount.ints - 1, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(MPI_ERR_TRUNCATE, error_class(code));
        // A library that reads GPU memory puts the header there.
        if (pulls() && !is_aware()) {
          EXPECT_TRUE(counting(memory_ints, receivers_first) == memory_.found());
        }
        memory_.set(receivers_first);
      }
    }
    pass(shape, shape);
  }
}

/// What completes by itself, or is let go of, has its bytes: none is lost, and the words are free again.
TEST_F(Pulls, SendsThatAreFreedOrCancelled) {
  if (!has_partner()) return;
  for (int times = 0; times < 80; ++times) {
    use(amounts[static_cast<std::size_t>(times % 2)]);
    const Shape& shape = shapes_[1];
    int flag = 0;
    if (sends()) {
      MPI_Request request;
      MPI_Isend(memory_.at(shape), 1, shape.type, partner(), tag, MPI_COMM_WORLD, &request);
      if (times % 4 < 2) {
        MPI_Request_free(&request);
      } else {
        flag = is_cancelled(&request);
      }
      MPI_Send(&flag, 1, MPI_INT, partner(), tag + 3, MPI_COMM_WORLD);
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&flag, 1, MPI_INT, partner(), tag + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (flag == 0) {
        receive(memory_.at(shape), 1, shape.type, MPI_STATUS_IGNORE);
        EXPECT_TRUE(memory_.with(shape, senders_first, shape, shape.places.size()) == memory_.found());
        memory_.set(receivers_first);
      }
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
    }
  }
  pass(shapes_[1], shapes_[1]);
}

/// Allocations of the program's come and go, at the same addresses, and datatypes are freed under way.
TEST_F(Pulls, AllocationsComeAndGo) {
  if (!has_partner()) return;
  use(amounts.front());
  const Shape& shape = shapes_[1];
  std::uint64_t most = 0;
  for (int times = 0; times < 12; ++times) {
    Memory fresh(sends() ? times : receivers_first);
    for (int k = 0; k < 8; ++k) {
      const std::uint64_t before = fetched();
      MPI_Datatype type;
      MPI_Type_dup(shape.type, &type);
      if (sends()) {
        MPI_Request request;
        MPI_Isend(fresh.at(shape), 1, type, partner(), tag, MPI_COMM_WORLD, &request);
        MPI_Type_free(&type);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        receive(fresh.at(shape), 1, type, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
        EXPECT_TRUE(fresh.with(shape, times, shape, shape.places.size()) == fresh.found());
        fresh.set(receivers_first);
        most += fetched() - before;
      }
      MPI_Sendrecv(nullptr, 0, MPI_INT, partner(), tag + 1, nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    }
  }
  if (!sends() && is_forced()) {
    EXPECT_GT(most, 0u);
    EXPECT_LT(mapped(), 6u) << "what the sender has freed is unmapped";
  }
}

/// A library that maps peers' memory itself is given no memory where freed memory lay, as long as a peer has that
/// mapped: the peer unmaps it though it calls nothing of MPI.
TEST_F(Pulls, WhatIsFreedIsUnmappedBeforeTheLibraryIsGivenOther) {
  if (!has_partner() || !pulls()) return;
  if (!is_aware()) GTEST_SKIP() << "the library maps no memory";
  use(amounts.front());
  const Shape &shape = shapes_[1], &contiguous = shapes_[0];
  const std::uint64_t before = mapped();
  auto old = std::make_unique<Memory>(sends() ? senders_first : receivers_first);
  for (int times = 0; times < 8; ++times) {
    if (sends()) send(old->at(shape), 1, shape.type);
    if (!sends()) receive(old->at(shape), 1, shape.type, MPI_STATUS_IGNORE);
    MPI_Sendrecv(nullptr, 0, MPI_INT, partner(), tag + 1, nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  if (!sends()) {
    EXPECT_GT(mapped(), before);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  old.reset();
  const std::uint64_t calls = counted("gapless_freed_calls");
  Memory fresh(sends() ? senders_first : receivers_first);
  if (sends()) {
    send(fresh.at(contiguous), contiguous.count, contiguous.type);
    EXPECT_EQ(calls + 1, counted("gapless_freed_calls"));
    send(fresh.at(contiguous), contiguous.count, contiguous.type);
    EXPECT_EQ(calls + 1, counted("gapless_freed_calls")) << "it has been met";
  } else {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (mapped() > before && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_LE(mapped(), before);
    for (int times = 0; times < 2; ++times)
      receive(fresh.at(contiguous), contiguous.count, contiguous.type, MPI_STATUS_IGNORE);
    EXPECT_TRUE(fresh.with(contiguous, senders_first, contiguous, contiguous.places.size()) == fresh.found());
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// A program that waits for its sends before it looks at a receive is served otherwise after a message or two.
TEST_F(Pulls, ProgramsThatWaitForTheirSendsFirst) {
  if (!has_partner()) return;
  use(amounts[1]);
  const Shape &from = shapes_[1], &into = shapes_[4];
  constexpr int exchanges = 40;
  memory_.set(1000 + rank());
  Memory incoming(receivers_first);
  const std::uint64_t before = copied_out();
  for (int k = 0; k < exchanges; ++k) {
    MPI_Request received, sent;
    MPI_Irecv(incoming.at(into), 1, into.type, partner(), tag, MPI_COMM_WORLD, &received);
    MPI_Isend(memory_.at(from), 1, from.type, partner(), tag, MPI_COMM_WORLD, &sent);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Wait(&received, MPI_STATUS_IGNORE);
    EXPECT_TRUE(incoming.with(into, 1000 + partner(), from, from.places.size()) == incoming.found());
    incoming.set(receivers_first);
  }
  if (pulls() && !is_forced()) {
    EXPECT_LT(copied_out(), before + 5);
  }
}

}  // namespace
}  // namespace gapless::test
