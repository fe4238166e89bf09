// Messages that the receiver's GPU reads in the program's memory at the sender: the right bytes between every two kinds
// of layout and in every kind of call, by counts that they were really read there; and senders that get their memory
// back although nobody receives yet.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headers/partners.hpp"
#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

std::uint64_t counted(const char* name) {
  const auto function = reinterpret_cast<std::uint64_t (*)()>(core_function(name));
  return function != nullptr ? function() : 0;
}
std::uint64_t offered() { return counted("gapless_pulls_received"); }
std::uint64_t fetched() { return counted("gapless_pulls_fetched"); }
std::uint64_t copied_out() { return counted("gapless_pulls_copied_out"); }
std::uint64_t mapped() { return counted("gapless_pulls_mapped"); }

/// Are messages read where they lie, in a run where exporting and mapping memory is not refused?
bool pulls() {
  const char *scheme = std::getenv("GAPLESS_SCHEME"), *setting = std::getenv("GAPLESS_PULL");
  return under_gapless() && (scheme == nullptr || std::string_view(scheme) == "direct") &&
         (setting == nullptr || std::string_view(setting) != "0") &&
         std::getenv("GAPLESS_TEST_SIMULATED_FAIL") == nullptr;
}

/// Is every message offered, though some have had to be copied out?
bool is_forced() { return pulls() && std::getenv("GAPLESS_SCHEME") != nullptr; }

/// Places of ints in memory, as a program says them to MPI.
struct Shape {
  std::string name;
  MPI_Datatype type;        ///< committed; for the test's end to free
  int count;                ///< of it
  int origin;               ///< index of the int that MPI is given the address of
  std::vector<int> places;  ///< index of each int, in packed order
  bool is_strided = true;
};

constexpr int resized_length = 4;

/// Of 256, 40'000 and 270'336 ints: 1 KiB, more than a segment, more than the exported memory.
struct Amount {
  int ints;
  int box[3];  ///< the same as a product
};
const std::vector<Amount> amounts{{256, {4, 8, 8}}, {40'000, {20, 40, 50}}, {270'336, {64, 64, 66}}};
constexpr std::size_t memory_ints = 815'000;

std::vector<Shape> shapes_of(const Amount& amount) {
  const int n = amount.ints;
  std::vector<Shape> shapes;
  const auto add = [&](const char* name, MPI_Datatype type, int count, int origin, auto place) {
    MPI_Type_commit(&type);
    Shape shape{name, type, count, origin, std::vector<int>(static_cast<std::size_t>(n)), true};
    for (int k = 0; k < n; ++k) shape.places[static_cast<std::size_t>(k)] = place(k);
    shapes.push_back(std::move(shape));
  };
  MPI_Datatype type, inner;
  MPI_Type_dup(MPI_INT, &type);
  add("contiguous", type, n, 7, [](int k) { return 7 + k; });
  add("pairs", strided(n / 2, 2, 5), 1, 0, [](int k) { return k / 2 * 5 + k % 2; });
  MPI_Type_vector(n, 1, 3, MPI_INT, &type);
  add("single ints", type, 1, 3, [](int k) { return 3 + 3 * k; });
  MPI_Type_vector(resized_length, 1, 2, MPI_INT, &inner);
  MPI_Type_create_resized(inner, 0, 9 * sizeof(int), &type);
  MPI_Type_free(&inner);
  add("many elements", type, n / resized_length, 0,
      [](int k) { return k / resized_length * 9 + k % resized_length * 2; });
  const int* const box = amount.box;
  const int sizes[3] = {box[0] + 2, box[1] + 3, box[2] + 4}, starts[3] = {1, 2, 3};
  MPI_Type_create_subarray(3, sizes, box, starts, MPI_ORDER_C, MPI_INT, &type);
  add("box", type, 1, 0, [=](int k) {
    const int x = k % box[2], y = k / box[2] % box[1], z = k / box[2] / box[1];
    return ((z + 1) * sizes[1] + y + 2) * sizes[2] + x + 3;
  });
  MPI_Type_create_hvector(n / 2, 2, -5 * static_cast<MPI_Aint>(sizeof(int)), MPI_INT, &type);
  const int last = (n / 2 - 1) * 5;
  add("backwards", type, 1, last, [=](int k) { return last - k / 2 * 5 + k % 2; });
  std::vector<int> displacements(static_cast<std::size_t>(n / 2));
  for (int k = 0; k < n / 2; ++k) displacements[static_cast<std::size_t>(k)] = 4 * k + (k * k % 3 == 1 ? 1 : 0);
  MPI_Type_create_indexed_block(n / 2, 2, displacements.data(), MPI_INT, &type);
  add("list", type, 1, 0, [&](int k) { return displacements[static_cast<std::size_t>(k / 2)] + k % 2; });
  shapes.back().is_strided = false;
  return shapes;
}

/// One allocation of the program's, which every message of a test comes out of, or goes into.
class Memory {
 public:
  explicit Memory(int first) : values_(counting(memory_ints, first)), ints_(values_, true) {}
  int* at(const Shape& shape) { return static_cast<int*>(ints_.data()) + shape.origin; }
  void set(int first) {
    values_ = counting(memory_ints, first);
    ints_.set(values_);
  }
  std::vector<int> found() const { return ints_.values(); }
  /// What the memory holds once the first `ints` of a message from there, in that shape, have come into it.
  std::vector<int> with(const Shape& mine, int first_of_sender, const Shape& senders, std::size_t ints) const {
    std::vector<int> result = values_;
    for (std::size_t k = 0; k < ints; ++k)
      result[static_cast<std::size_t>(mine.places[k])] = first_of_sender + senders.places[k];
    return result;
  }

 private:
  std::vector<int> values_;
  Ints ints_;
};

class Pulls : public testing::Test {
 protected:
  static constexpr int senders_first = 1000, receivers_first = -5'000'000;

  Pulls() : memory_(sends() ? senders_first : receivers_first) {
    MPI_Barrier(MPI_COMM_WORLD);
    introduce();
  }
  ~Pulls() override {
    for (Shape& shape : shapes_) MPI_Type_free(&shape.type);
  }

  void use(const Amount& amount) {
    for (Shape& shape : shapes_) MPI_Type_free(&shape.type);
    shapes_ = shapes_of(amount);
  }

  /// Has partners find out that they can, and tells the receiver of the sender's memory.
  void introduce() {
    use(amounts.front());
    const Shape& shape = shapes_[1];
    Memory other(0);
    for (int times = 0; has_partner() && times < 10; ++times) {
      const auto go = [&](bool sending) {
        if (sending) MPI_Send(memory_.at(shape), 1, shape.type, partner(), tag, MPI_COMM_WORLD);
        if (!sending) MPI_Recv(other.at(shape), 1, shape.type, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      };
      go(sends());
      go(!sends());
    }
    if (!sends()) memory_.set(receivers_first);
  }

  using SendShape = std::function<void(const void*, int, MPI_Datatype)>;
  using ReceiveShape = std::function<void(void*, int, MPI_Datatype, MPI_Status*)>;

  static void send(const void* memory, int count, MPI_Datatype type) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Send(memory, count, type, partner(), tag, MPI_COMM_WORLD));
  }
  static void receive(void* memory, int count, MPI_Datatype type, MPI_Status* status) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Recv(memory, count, type, partner(), tag, MPI_COMM_WORLD, status));
  }

  /// One message from the even rank of each pair.
  void pass(const Shape& from, const Shape& into, const SendShape& by = send, const ReceiveShape& take = receive) {
    if (!has_partner()) return;
    const std::uint64_t before = offered();
    if (sends()) {
      by(memory_.at(from), from.count, from.type);
    } else {
      MPI_Status status{};
      take(memory_.at(into), into.count, into.type, &status);
      int got = -1;
      MPI_Get_elements(&status, into.type, &got);
      EXPECT_EQ(static_cast<int>(from.places.size()), got);
      EXPECT_TRUE(memory_.with(into, senders_first, from, from.places.size()) == memory_.found())
          << from.name << " to " << into.name << ", " << from.places.size();
      if (is_forced() || !pulls()) {
        EXPECT_EQ(before + (pulls() && from.is_strided ? 1 : 0), offered())
            << from.name << " to " << into.name << ", " << from.places.size();
      }
      memory_.set(receivers_first);
    }
    // The receiver looks before the next message comes, and both start at once.
    MPI_Sendrecv(nullptr, 0, MPI_INT, partner(), tag + 1, nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }

  const ReturnErrors errors_{MPI_COMM_WORLD};
  std::vector<Shape> shapes_;
  Memory memory_;
};

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
        if (pulls()) {
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
    int is_cancelled = 0;
    if (sends()) {
      MPI_Request request;
      MPI_Status status;
      MPI_Isend(memory_.at(shape), 1, shape.type, partner(), tag, MPI_COMM_WORLD, &request);
      if (times % 4 < 2) {
        MPI_Request_free(&request);
      } else {
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
      }
      MPI_Send(&is_cancelled, 1, MPI_INT, partner(), tag + 3, MPI_COMM_WORLD);
      MPI_Recv(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&is_cancelled, 1, MPI_INT, partner(), tag + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (is_cancelled == 0) {
        receive(memory_.at(shape), 1, shape.type, MPI_STATUS_IGNORE);
        EXPECT_TRUE(memory_.with(shape, senders_first, shape, shape.places.size()) == memory_.found());
        memory_.set(receivers_first);
      }
      MPI_Send(nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD);
    }
  }
  pass(shapes_[1], shapes_[1]);
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
