// Random traffic with wildcards against a sequential model of MPI's matching.
//
// Each round, every endpoint sends numbered messages to random others, in its own order, while it posts receives of all
// kinds: by source and tag, with either wildcard, with both. The traffic is made of the seed alone, so that every
// endpoint knows what each sends. What was received is checked against the rules: a receive takes a message that it
// accepts, and of the messages that one source sends to one endpoint, no receive takes a later one while an earlier one
// that it accepts too is left. Receives are posted in an order that makes every message find one.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "endpoints/delivery/long_ways.hpp"
#include "endpoints/rings/outbox.hpp"
#include "endpoints/rings/ring.hpp"
#include "gapless/endpoints.h"
#include "support/environment.hpp"
#include "support/random.hpp"

namespace gapless::test {
namespace {

constexpr int tags = 4;

struct Sent {
  int to, tag, length;
};
struct Content {
  int source, number;
};

/// What an endpoint sends in a round, in order.
std::vector<Sent> traffic(int seed, int round, int source, int size, int count) {
  std::seed_seq numbers{seed, round, source};
  std::mt19937 random(numbers);
  std::vector<Sent> all(static_cast<std::size_t>(count));
  for (Sent& message : all) {
    message = {static_cast<int>(random() % static_cast<unsigned>(size)), static_cast<int>(random() % tags),
               random() % 16 == 0 ? 5000 : static_cast<int>(2 + random() % 20)};
  }
  return all;
}

struct Expected {
  int source, number, tag, length;
  bool taken = false;
};

struct Receive {
  int source, tag;
  std::vector<int> memory;
  MPI_Request request;
};

/// A receive for every message that will come, in random order. Those with wildcards are posted last, so that none
/// takes the only message that another can have.
std::vector<Receive> receives_for(const std::vector<Expected>& messages, std::mt19937& random) {
  std::vector<Receive> all;
  for (const Expected& message : messages) all.push_back({message.source, message.tag, std::vector<int>(5000), {}});
  std::shuffle(all.begin(), all.end(), random);
  const std::size_t exact = all.size() * (random() % 4) / 4;
  for (std::size_t i = exact; i < all.size(); ++i) all[i].source = MPI_ANY_SOURCE;
  const std::size_t with_tag = exact + (all.size() - exact) / 2;
  for (std::size_t i = with_tag; i < all.size(); ++i) all[i].tag = MPI_ANY_TAG;
  // The other wildcard alone: all receives from one source.
  if (random() % 3 == 0) {
    std::size_t i = 0;
    for (const Expected& message : messages) {
      all[i].source = message.source;
      all[i++].tag = MPI_ANY_TAG;
    }
  }
  return all;
}

bool accepts(const Receive& receive, const Expected& message) {
  return (receive.source == MPI_ANY_SOURCE || receive.source == message.source) &&
         (receive.tag == MPI_ANY_TAG || receive.tag == message.tag);
}

/// Receives in the order of posting against the messages: 0 if MPI's rules hold.
int check(std::vector<Expected>& messages, const std::vector<Receive>& receives,
          const std::vector<MPI_Status>& statuses) {
  int wrong = 0;
  for (std::size_t i = 0; i < receives.size(); ++i) {
    const MPI_Status& status = statuses[i];
    const Content got{receives[i].memory[0], receives[i].memory[1]};
    const auto taken = std::find_if(messages.begin(), messages.end(), [&](const Expected& message) {
      return message.source == got.source && message.number == got.number;
    });
    if (taken == messages.end() || taken->taken || !accepts(receives[i], *taken)) return wrong + 1;
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    wrong += count != taken->length || status.MPI_SOURCE != taken->source || status.MPI_TAG != taken->tag;
    wrong += receives[i].memory[static_cast<std::size_t>(count) - 1] != (count == 2 ? got.number : got.number + count);
    // Messages of a source are in the order of sending.
    for (auto earlier = messages.begin(); earlier != taken; ++earlier)
      wrong += !earlier->taken && earlier->source == taken->source && accepts(receives[i], *earlier);
    taken->taken = true;
  }
  return wrong;
}

int play(MPI_Comm comm, int seed, int round, int count) {
  const int me = rank(comm), all = size(comm);
  std::seed_seq numbers{seed, round, me, 1};
  std::mt19937 random(numbers);
  std::vector<Expected> messages;
  for (int source = 0; source < all; ++source) {
    const std::vector<Sent> sent = traffic(seed, round, source, all, count);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (sent[i].to == me) messages.push_back({source, static_cast<int>(i), sent[i].tag, sent[i].length});
    }
  }
  std::vector<Receive> receives = receives_for(messages, random);
  const std::vector<Sent> mine = traffic(seed, round, me, all, count);
  std::vector<std::vector<int>> out;
  std::vector<MPI_Request> sends;
  std::size_t posted = 0, begun = 0;
  while (posted < receives.size() || begun < mine.size()) {
    if (posted < receives.size() && (begun == mine.size() || random() % 2 == 0)) {
      Receive& receive = receives[posted++];
      MPI_Irecv(receive.memory.data(), 5000, MPI_INT, receive.source, receive.tag, comm, &receive.request);
      continue;
    }
    const Sent& message = mine[begun];
    std::vector<int> memory(static_cast<std::size_t>(message.length));
    memory.back() = static_cast<int>(begun) + message.length;
    memory[0] = me;
    memory[1] = static_cast<int>(begun);
    out.push_back(std::move(memory));
    sends.emplace_back();
    MPI_Isend(out.back().data(), message.length, MPI_INT, message.to, message.tag, comm, &sends.back());
    ++begun;
  }
  std::vector<MPI_Request> requests;
  for (const Receive& receive : receives) requests.push_back(receive.request);
  std::vector<MPI_Status> statuses(receives.size());
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
  MPI_Barrier(comm);
  return check(messages, receives, statuses);
}

int messages_wanted() {
  const char* text = std::getenv("GAPLESS_TEST_MESSAGES");
  return text != nullptr ? std::atoi(text) : 100000;
}

TEST(Matching, OfRandomTrafficFollowsMpiSRules) {
  constexpr int each = 3, count = 40;
  std::vector<MPI_Comm> handles(each);
  ASSERT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_WORLD, each, MPI_INFO_NULL, handles.data()));
  int shared_seed = static_cast<int>(seed() & 0x7fffffff);
  MPI_Bcast(&shared_seed, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const int rounds = messages_wanted() / (each * size() * count) + 1;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (MPI_Comm& handle : handles) {
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) wrong += play(handle, shared_seed, round, count);
      MPI_Comm_free(&handle);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
}

/// All send to all and only then receive: rings fill, short messages stall behind long ones, and those that were begun
/// first still come first. Lengths straddle what lies in a cell, beside the cells, and with the sender.
int flood(MPI_Comm comm, int count) {
  const int me = rank(comm), all = size(comm);
  const auto length = [](int source, int i) { return i % 97 == 0 ? 3000 : i % 7 == 0 ? 2048 : 2 + (i + source) % 16; };
  std::vector<int> out(3001);
  std::vector<std::vector<int>> kept;
  std::vector<MPI_Request> sends;
  for (int i = 0; i < count; ++i) {
    for (int to = 0; to < all; ++to) {
      const int ints = length(me, i);
      out[0] = me;
      out[1] = i;
      out[static_cast<std::size_t>(ints) - 1] = ints == 2 ? i : i + ints;
      if (ints < 2048 && i % 3 == 0) {
        MPI_Send(out.data(), ints, MPI_INT, to, i % 2, comm);
        continue;
      }
      kept.emplace_back(out.begin(), out.begin() + ints);
      sends.emplace_back();
      const auto start = i % 5 == 1 ? MPI_Issend : MPI_Isend;
      start(kept.back().data(), ints, MPI_INT, to, i % 2, comm, &sends.back());
      if (i % 11 == 0) MPI_Cancel(&sends.back());  // a send is never cancelled
    }
  }
  int wrong = 0;
  std::vector<int> in(3001);
  std::vector<int> next(static_cast<std::size_t>(2 * all));
  for (int taken = 0; taken < count * all; ++taken) {
    MPI_Status status;
    if (taken % 2 == 0) {
      MPI_Recv(in.data(), 3001, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
    } else {
      MPI_Message message;
      MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &status);
      MPI_Mrecv(in.data(), 3001, MPI_INT, &message, &status);
    }
    int ints = 0;
    MPI_Get_count(&status, MPI_INT, &ints);
    int& number = next[static_cast<std::size_t>(2 * status.MPI_SOURCE + status.MPI_TAG)];
    const int expected = 2 * number++ + status.MPI_TAG;
    wrong += in[0] != status.MPI_SOURCE || in[1] != expected || ints != length(in[0], expected);
    wrong += in[static_cast<std::size_t>(ints) - 1] != (ints == 2 ? expected : expected + ints);
  }
  std::vector<MPI_Status> statuses(sends.size());
  wrong += MPI_Waitall(static_cast<int>(sends.size()), sends.data(), statuses.data()) != MPI_SUCCESS;
  for (const MPI_Status& status : statuses) {
    int flag = 0;
    MPI_Test_cancelled(&status, &flag);
    wrong += flag;
  }
  MPI_Barrier(comm);
  return wrong;
}

TEST(Rings, ThatAreFullHoldNobodyUpForEver) {
  constexpr int each = 3, count = 700;
  std::vector<MPI_Comm> handles(each);
  ASSERT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_WORLD, each, MPI_INFO_NULL, handles.data()));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (MPI_Comm& handle : handles) {
    threads.emplace_back([&] {
      wrong += flood(handle, count);
      MPI_Comm_free(&handle);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
}

TEST(Rings, AreReadWhileTheirNumbersWrapAround) {
  using mpi::endpoints::Cell;
  using mpi::endpoints::RingMemory;
  for (const std::uint32_t first : {0u, 0u - 1000, 0u - RingMemory::cell_count, 0u - 70000}) {
    constexpr int count = 100000;
    const std::atomic<bool> closed{false};
    const auto memory = std::make_unique<RingMemory>();
    memory->begin(first);
    mpi::endpoints::RingWriter to;
    to.open(*memory, closed, first);
    mpi::endpoints::RingReader from;
    from.open(*memory, 3, first);
    const auto bytes_of = [](int i) { return i % 50 == 0 ? 8192 : i * 13 % 200; };
    std::thread writer([&] {
      for (int i = 0; i < count;) {
        const int bytes = bytes_of(i);
        const mpi::endpoints::RingWriter::Room room = to.claim(bytes);
        if (room.cell == nullptr) {
          std::this_thread::yield();
          continue;
        }
        room.cell->tag = i++;
        room.cell->number = static_cast<std::uint16_t>(bytes);
        std::fill_n(room.memory, bytes, static_cast<std::byte>(i));
        to.publish(*room.cell);
      }
    });
    int wrong = 0;
    for (int i = 0; i < count;) {
      const Cell* const cell = from.front();
      if (cell == nullptr) {
        std::this_thread::yield();
        continue;
      }
      wrong += cell->tag != i || cell->number != bytes_of(i);
      const std::byte* const bytes = from.bytes_of(*cell);
      ++i;
      wrong +=
          !std::all_of(bytes, bytes + cell->number, [&](std::byte one) { return one == static_cast<std::byte>(i); });
      from.pop();
    }
    writer.join();
    EXPECT_EQ(0, wrong) << "from " << first;
    EXPECT_EQ(nullptr, from.front());
  }
}

/// Reader and writer copy every byte of an offer once, and only then is the offer copied.
TEST(Loans, AreCopiedByBothSides) {
  using mpi::endpoints::Loan;
  Loan loan{};
  const MPI_Count piece = Loan::piece_bytes_for(2);
  for (const MPI_Count bytes : {2 * piece, 2 * piece + 1, 40 * piece - 3}) {
    for (int round = 0; round < 200; ++round) {
      std::vector<char> copies(static_cast<std::size_t>(bytes), 0);
      const auto copy = [&](Loan::Piece piece) {
        for (MPI_Count i = 0; i < piece.bytes; ++i) ++copies[static_cast<std::size_t>(piece.begin + i)];
      };
      loan.begin();
      EXPECT_EQ(0, loan.next_to_give().bytes);
      std::thread writer([&] {
        while (loan.state.load(std::memory_order_acquire) == Loan::State::pending) {
          const Loan::Piece piece = loan.next_to_give();
          if (piece.bytes == 0) continue;
          copy(piece);
          loan.end_piece(true);
        }
      });
      loan.offer(nullptr, bytes, piece);
      MPI_Count taken = 0;
      for (Loan::Piece piece; (piece = loan.begin_piece()).bytes != 0; ++taken) copy(piece);
      while (!loan.are_copied(taken)) std::this_thread::yield();
      EXPECT_TRUE(std::all_of(copies.begin(), copies.end(), [](char times) { return times == 1; }));
      loan.end(Loan::State::taken, 1);
      writer.join();
    }
  }
}

/// Messages of any lengths have room of their own until their readers, who come in any order, have taken them.
TEST(Outboxes, KeepMessagesUntilTheyAreTaken) {
  using mpi::endpoints::Outbox;
  using mpi::endpoints::OutboxMemory;
  const auto memory = std::make_unique<OutboxMemory>();
  Outbox outbox;
  outbox.open(*memory);
  struct Message {
    int unit;
    MPI_Count bytes;
    std::byte value;
  };
  std::vector<Message> left;
  int taken = 0, told = 0, times_full = 0;
  const auto note = [&](MPI_Count, std::uint32_t ns) {
    ++told;
    EXPECT_EQ(70u, ns);  // the longer of 70, of the sender, and what readers tell
  };
  std::mt19937 random(2026);
  for (int i = 0; i < 20000; ++i) {
    const auto bytes = static_cast<MPI_Count>(1 + random() % Outbox::most_bytes);
    const int unit = outbox.claim(bytes, note);
    if (unit >= 0) {
      outbox.note_copied(unit, 70);
      left.push_back({unit, bytes, static_cast<std::byte>(i)});
      std::fill_n(outbox.at(unit), bytes, left.back().value);
    } else {
      ++times_full;
    }
    while (!left.empty() && (unit < 0 || random() % 2 == 0)) {
      const std::size_t which = random() % left.size();
      const Message message = left[which];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(which));
      const std::byte* const begin = memory->at(message.unit);
      ASSERT_TRUE(std::all_of(begin, begin + message.bytes, [&](std::byte one) { return one == message.value; })) << i;
      random() % 8 == 0 ? outbox.withdraw(message.unit) : (++taken, memory->end(message.unit, taken % 2 == 0 ? 0 : 69));
      if (unit < 0) break;
    }
  }
  EXPECT_LT(0, times_full);
  EXPECT_LE(told, taken);
  EXPECT_LT(taken - OutboxMemory::unit_count, told);
}

/// The longest message fits as long as nothing else is there, and one more byte than there is room for does not.
TEST(Outboxes, AreFullInTheEnd) {
  using mpi::endpoints::Outbox;
  const auto memory = std::make_unique<mpi::endpoints::OutboxMemory>();
  Outbox outbox;
  outbox.open(*memory);
  const auto note = [](MPI_Count, std::uint32_t) {};
  std::vector<int> units;
  for (int unit; (unit = outbox.claim(Outbox::most_bytes, note)) >= 0;) units.push_back(unit);
  EXPECT_EQ((std::vector{0, 16, 32, 48}), units);
  EXPECT_EQ(-1, outbox.claim(1, note));
  memory->end(32, 5);
  EXPECT_EQ(32, outbox.claim(1, note));
  EXPECT_EQ(-1, outbox.claim(Outbox::most_bytes, note));
}

/// Both ways are measured; the slower one is tried now and then, and a slow read counts at once.
TEST(LongWays, AreMeasured) {
  mpi::endpoints::LongWays ways;
  constexpr MPI_Count bytes = 100000, surely = 32768;
  EXPECT_TRUE(ways.goes_to_outbox(surely));
  EXPECT_FALSE(ways.goes_to_outbox(bytes));
  ways.note_attached(surely, 1);  // tells nothing of long ones
  EXPECT_FALSE(ways.goes_to_outbox(bytes));
  ways.note_attached(bytes, 10000);
  EXPECT_TRUE(ways.goes_to_outbox(bytes));
  ways.note_in_outbox(bytes, 20000);
  const auto left_of = [&](int messages) {
    int left = 0;
    for (int i = 0; i < messages; ++i) left += ways.goes_to_outbox(bytes) ? 1 : 0;
    return left;
  };
  EXPECT_EQ(4, left_of(1024));
  ways.note_attached(bytes, 300000);
  EXPECT_EQ(1020, left_of(1024));
  ways.note_attached(bytes, 10000);  // one fast read of eight slow ones
  EXPECT_EQ(1020, left_of(1024));
  for (int i = 0; i < 12; ++i) ways.note_attached(bytes, 10000);
  EXPECT_EQ(4, left_of(1024));
}

}  // namespace
}  // namespace gapless::test
