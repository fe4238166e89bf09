// Messages complete while their peer sits in any call that blocks: one end has started and sits, the other completes,
// and only then does what the first waits for.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/environment.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr unsigned limit_seconds = 20;

// What is under way, for the one who reads that it has not ended.
char under_way[256] = "nothing";

void limit_time(const std::string& what) {
  std::snprintf(under_way, sizeof under_way, "%s", what.c_str());
  std::signal(SIGALRM, [](int) {
    static constexpr char text[] = "hangs: ";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0 ||
        write(STDERR_FILENO, under_way, std::strlen(under_way)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
      _exit(3);
    _exit(2);
  });
  alarm(limit_seconds);
}

struct End {
  bool is_strided, on_gpu;
};
std::string text(const End& end) {
  return std::string(end.is_strided ? "strided " : "contiguous ") + (end.on_gpu ? "GPU" : "host");
}

struct Case {
  End sender, receiver;
  int ints;
  bool persistent_send, persistent_receive, sender_sits;
};
std::string text(const Case& c) {
  return text(c.sender) + (c.persistent_send ? " Send_init" : " Isend") + " to " + text(c.receiver) +
         (c.persistent_receive ? " Recv_init" : " Irecv") + ", " + std::to_string(c.ints) + " ints, the " +
         (c.sender_sits ? "sender" : "receiver") + " sits";
}

std::vector<Case> cases() {
  std::vector<End> ends{{false, false}, {true, false}};
  if (has_gpu()) {
    ends.push_back({true, true});
    ends.push_back({false, true});
  }
  std::vector<Case> result;
  for (const End& sender : ends) {
    for (const End& receiver : ends) {
      if (!sender.is_strided && !sender.on_gpu && !receiver.is_strided && !receiver.on_gpu) continue;
      // Short ones, and some beyond every eager limit.
      for (const int ints : {16, 40'000}) {
        for (int bits = 0; bits < 8; ++bits)
          result.push_back({sender, receiver, ints, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
      }
    }
  }
  return result;
}

/// A call that blocks until others take part: all together, or of two processes the one that waits for a message of the
/// other's.
class Sit {
 public:
  virtual ~Sit() = default;
  virtual void together() {}
  virtual bool is_of_two() const { return false; }
  virtual void wait_for(int) {}
};

int partner() { return size() == 1 ? 0 : rank() ^ 1; }

/// One end of a message.
class Message {
 public:
  Message(const End& end, int ints, bool sends, bool is_persistent)
      : end_(end),
        ints_(ints),
        memory_(sends ? counting(span(), 5 * rank()) : std::vector<int>(span(), -1), end.on_gpu),
        is_persistent_(is_persistent) {
    const Owned type(end.is_strided ? strided(ints, 1, 2) : strided(1, ints, ints));
    if (sends && is_persistent) MPI_Send_init(memory_.data(), 1, type, partner(), 1, MPI_COMM_WORLD, &request_);
    if (sends && !is_persistent) MPI_Isend(memory_.data(), 1, type, partner(), 1, MPI_COMM_WORLD, &request_);
    if (!sends && is_persistent) MPI_Recv_init(memory_.data(), 1, type, partner(), 1, MPI_COMM_WORLD, &request_);
    if (!sends && !is_persistent) MPI_Irecv(memory_.data(), 1, type, partner(), 1, MPI_COMM_WORLD, &request_);
    if (is_persistent) MPI_Start(&request_);
  }
  void complete() {
    EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request_, MPI_STATUS_IGNORE));
    if (is_persistent_) MPI_Request_free(&request_);
  }
  void expect_received(const End& sender) {
    const std::size_t of_sender = (sender.is_strided ? 2 : 1) * static_cast<std::size_t>(ints_);
    const std::vector<int> sent = counting(of_sender, 5 * partner());
    const std::vector<int> values = sender.is_strided ? picked(sent, ints_, 1, 2) : sent;
    const std::vector<int> empty(span(), -1);
    EXPECT_TRUE((end_.is_strided ? placed(empty, values, 1, 2) : values) == memory_.values());
  }

 private:
  std::size_t span() const { return (end_.is_strided ? 2 : 1) * static_cast<std::size_t>(ints_); }

  End end_;
  int ints_;
  Ints memory_;
  bool is_persistent_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

/// The way that a run forces messages to take.
struct Way {
  bool (*is_for)(const Case&);    ///< by their ends
  bool (*is_taken)(const Case&);  ///< so that this process counts the message
  std::uint64_t (*messages)();
};
bool sends() { return rank() % 2 == 0; }
std::optional<Way> forced_way() {
  const char* scheme = std::getenv("GAPLESS_SCHEME");
  if (!under_gapless() || scheme == nullptr || size() == 1) return std::nullopt;
  const auto is_any = [](const Case&) { return true; };
  const auto is_strided_here = [](const Case& c) { return (sends() ? c.sender : c.receiver).is_strided; };
  const auto is_from_strides = [](const Case& c) { return c.sender.is_strided; };
  const auto is_between_gpus = [](const Case& c) { return c.sender.on_gpu && c.receiver.on_gpu; };
  const auto is_long = [](const Case& c) { return c.ints > 1000; };
  // What a persistent request sends is packed where it would go by a fabric.
  const auto is_long_and_once = [](const Case& c) { return c.ints > 1000 && !c.persistent_send; };
  const std::string_view name(scheme);
  if (name == "packed") return Way{is_any, is_strided_here, packed_messages};
  if (name == "slots") return Way{is_from_strides, is_long, slots_messages};
  if (name == "direct") return Way{is_between_gpus, is_long, direct_messages};
  if (name == "fabric-pipelined") return Way{is_from_strides, is_long_and_once, fabric_messages};
  ADD_FAILURE() << "no statistics of " << name;
  return std::nullopt;
}

void with_oneself(const Case& c, Sit& sit) {
  Message in(c.receiver, c.ints, false, c.persistent_receive), out(c.sender, c.ints, true, c.persistent_send);
  if (!sit.is_of_two()) sit.together();
  in.complete();
  out.complete();
  in.expect_received(c.sender);
}

void with_partner(const Case& c, Sit& sit) {
  constexpr int token_tag = 2;
  const bool sends = rank() % 2 == 0;
  Message mine(sends ? c.sender : c.receiver, c.ints, sends, sends ? c.persistent_send : c.persistent_receive);
  const bool sits = sends == c.sender_sits;
  const int token = 1;
  if (!sits) mine.complete();
  if (!sit.is_of_two()) {
    sit.together();
  } else if (sits) {
    sit.wait_for(token_tag);
  } else {
    MPI_Send(&token, 1, MPI_INT, partner(), token_tag, MPI_COMM_WORLD);
  }
  if (sits) mine.complete();
  if (!sends) mine.expect_received(c.sender);
}

void run(const std::string& name, Sit& sit) {
  const std::optional<Way> way = forced_way();
  const std::uint64_t before = way ? way->messages() : 0;
  std::uint64_t wanted = 0;
  for (const Case& c : cases()) {
    if (way && !way->is_for(c)) continue;
    SCOPED_TRACE(text(c) + " in " + name);
    limit_time(text(c) + " in " + name);
    size() == 1 ? with_oneself(c, sit) : with_partner(c, sit);
    wanted += way && way->is_taken(c) ? 1 : 0;
  }
  alarm(0);
  if (!way) return;
  // Some go before the processes have found out what they can, or are counted after their send is complete.
  EXPECT_LE(wanted, 2 * (way->messages() - before)) << "messages in " << name << " went another way";
}

TEST(Progress, WhileThePeerProbes) {
  struct : Sit {
    bool is_of_two() const override { return true; }
    void wait_for(int tag) override {
      int token = 0;
      MPI_Probe(partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(&token, 1, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } sit;
  run("Probe", sit);
}

TEST(Progress, WhileThePeerReceives) {
  struct : Sit {
    bool is_of_two() const override { return true; }
    void wait_for(int tag) override {
      int token = 0;
      MPI_Recv(&token, 1, MPI_INT, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } sit;
  run("Recv", sit);
}

TEST(Progress, WhileThePeerIsInABarrier) {
  struct : Sit {
    void together() override { MPI_Barrier(MPI_COMM_WORLD); }
  } sit;
  run("Barrier", sit);
}

TEST(Progress, WhileThePeerIsInABroadcast) {
  // From either end.
  struct OfRoot : Sit {
    explicit OfRoot(int of) : root(of) {}
    void together() override {
      int value = rank();
      MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
    }
    int root;
  };
  for (const int root : {0, size() - 1}) {
    OfRoot sit(root);
    run("Bcast", sit);
  }
}

TEST(Progress, WhileThePeerReduces) {
  struct : Sit {
    void together() override {
      int one = 1, sum = 0;
      MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      EXPECT_EQ(size(), sum);
    }
  } sit;
  run("Allreduce", sit);
}

TEST(Progress, WhileThePeerIsAtAFence) {
  struct : Sit {
    void together() override { MPI_Win_fence(0, window); }
    MPI_Win window = MPI_WIN_NULL;
    int memory[4] = {};
  } sit;
  MPI_Win_create(sit.memory, sizeof sit.memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &sit.window);
  MPI_Win_fence(0, sit.window);
  run("Win_fence", sit);
  MPI_Win_free(&sit.window);
}

TEST(Progress, WhileThePeerWritesAFile) {
  struct : Sit {
    void together() override {
      int value = rank();
      MPI_File_write_at_all(file, static_cast<MPI_Offset>(sizeof value) * rank(), &value, 1, MPI_INT,
                            MPI_STATUS_IGNORE);
    }
    MPI_File file = MPI_FILE_NULL;
  } sit;
  char name[] = "/tmp/gapless-progress-XXXXXX";
  if (rank() == 0) close(mkstemp(name));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &sit.file);
  run("File_write_at_all", sit);
  MPI_File_close(&sit.file);
}

TEST(Progress, WhileThePeerMakesACommunicator) {
  struct : Sit {
    void together() override {
      MPI_Comm half;
      MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, 0, &half);
      MPI_Comm_free(&half);
    }
  } sit;
  run("Comm_split", sit);
}

TEST(Progress, WhileThePeerLooksForAMessage) {
  struct : Sit {
    bool is_of_two() const override { return true; }
    void wait_for(int tag) override {
      int token = 0, flag = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      while (flag == 0) MPI_Improbe(partner(), tag, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
      MPI_Mrecv(&token, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
  } sit;
  run("Improbe", sit);
}

#ifdef MPICH_NAME
TEST(Progress, WhileThePeerLooksAtARequest) {
  if (dlsym(RTLD_DEFAULT, "MPIX_Request_is_complete") == nullptr) GTEST_SKIP() << "no MPIX_Request_is_complete";
  struct : Sit {
    bool is_of_two() const override { return true; }
    void wait_for(int tag) override {
      int token = 0;
      MPI_Request request;
      MPI_Irecv(&token, 1, MPI_INT, partner(), tag, MPI_COMM_WORLD, &request);
      // Looks only: the library goes on by a call that gapless does not know.
      while (!MPIX_Request_is_complete(request)) MPIX_Stream_progress(MPIX_STREAM_NULL);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  } sit;
  run("Request_is_complete", sit);
}
#endif

TEST(Progress, WhileThePeerMakesATopology) {
  struct : Sit {
    void together() override {
      MPI_Comm line;
      const int dimensions[] = {size()}, periods[] = {0};
      MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periods, 0, &line);
      MPI_Comm_free(&line);
    }
  } sit;
  run("Cart_create", sit);
}

TEST(Progress, WhileThePeerPostsAWindow) {
  struct : Sit {
    bool is_of_two() const override { return false; }
    void together() override {
      MPI_Win_post(others, 0, window);
      MPI_Win_start(others, 0, window);
      MPI_Win_complete(window);
      MPI_Win_wait(window);
    }
    MPI_Group others = MPI_GROUP_NULL;
    MPI_Win window = MPI_WIN_NULL;
    int memory[4] = {};
  } sit;
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int other = partner();
  MPI_Group_incl(world, 1, &other, &sit.others);
  MPI_Win_create(sit.memory, sizeof sit.memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &sit.window);
  run("Win_wait", sit);
  MPI_Win_free(&sit.window);
  MPI_Group_free(&sit.others);
  MPI_Group_free(&world);
}

TEST(Progress, WhileThePeerCompletesACollective) {
  struct : Sit {
    void together() override {
      int one = 1, sum = 0;
      MPI_Request requests[2];
      MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
      MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      EXPECT_EQ(size(), sum);
    }
  } sit;
  run("Ibarrier, Iallreduce", sit);
}

/// The last thing of all: the senders free their requests and are in MPI_Finalize while their messages are received.
class AtTheEnd : public testing::Environment {
 public:
  void TearDown() override {
    constexpr int ints = 100'000;
    if (size() == 1) return;
#ifndef OPEN_MPI  // MPICH 5.0.2 may end before the messages of freed requests have left
    if (!under_gapless()) return;
#endif
    limit_time("Finalize");
    const bool on_gpu = has_gpu();
    const Owned type(strided(ints, 1, 2));
    if (rank() % 2 == 0) {
      // Never destroyed: it is read until the process ends.
      auto* memory = new Ints(counting(2 * ints, rank()), on_gpu);
      auto* more = new Ints(counting(2 * ints, rank() + 1), on_gpu);
      MPI_Request requests[2];
      MPI_Isend(memory->data(), 1, type, partner(), 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Send_init(more->data(), 1, type, partner(), 2, MPI_COMM_WORLD, &requests[1]);
      MPI_Start(&requests[1]);
      for (MPI_Request& request : requests) MPI_Request_free(&request);
      return;
    }
    usleep(200'000);
    for (const int tag : {1, 2}) {
      Ints memory(std::vector<int>(2 * ints, -1), on_gpu);
      EXPECT_EQ(MPI_SUCCESS, MPI_Recv(memory.data(), 1, type, partner(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      const std::vector<int> sent = picked(counting(2 * ints, partner() + tag - 1), ints, 1, 2);
      EXPECT_TRUE(placed(std::vector<int>(2 * ints, -1), sent, 1, 2) == memory.values());
    }
  }
};

[[maybe_unused]] testing::Environment* const at_the_end = testing::AddGlobalTestEnvironment(new AtTheEnd);

}  // namespace
}  // namespace gapless::test
