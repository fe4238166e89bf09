// Messages by a fabric that come to no good end: cancelled, of datatypes that are freed, more than there is room for,
// and of a peer that dies.

#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "headers/fabric_messages.hpp"
#include "headers/killed_peers.hpp"
#include "support/cancelled.hpp"

namespace gapless::test {
namespace {

class FabricFaults : public Fabric {};

/// MPI_Wait returns after MPI_Cancel, whatever the peer does: it receives only afterwards.
TEST_F(FabricFaults, CancelledReceivesAndSends) {
  if (!takes_part()) return;
  const Side from(256, 300, 400, 1);
  Side to(256, 300, 512, -1);
  MPI_Request request;
  MPI_Status status;
  int flag = 0;
  if (!is_sender()) {
    MPI_Irecv(to.values.data(), 1, to.type, sender, tag + 2, MPI_COMM_WORLD, &request);
    EXPECT_NE(0, is_cancelled(&request));
    EXPECT_TRUE(std::vector<int>(to.values.size(), -1) == to.values);
    MPI_Recv(&flag, 1, MPI_INT, sender, tag + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (flag == 0) {
      receive(to, By::blocking, status);
      EXPECT_TRUE(to.after(from.packed()) == to.values);
    }
  } else {
    // What is not taken when the call returns is copied out, so that the memory may change.
    std::vector<int> values = from.values;
    MPI_Isend(values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
    if (uses_fabric()) {
      flag = is_cancelled(&request);
      values.assign(values.size(), -7);
      MPI_Send(&flag, 1, MPI_INT, receiver, tag + 3, MPI_COMM_WORLD);
    } else {
      MPI_Send(&flag, 1, MPI_INT, receiver, tag + 3, MPI_COMM_WORLD);
      MPI_Wait(&request, &status);
    }
  }
}

/// A datatype may end as soon as the calls that it is given to have returned.
TEST_F(FabricFaults, DatatypesFreedInFlight) {
  if (!takes_part()) return;
  for (const char* scheme : scheme_names) {
    force(scheme);
    const Side from(256, 300, 400, 1);
    Side to(256, 300, 512, -1);
    MPI_Datatype own;
    MPI_Request request;
    MPI_Type_dup(is_sender() ? from.type : to.type, &own);
    if (is_sender()) {
      MPI_Isend(from.values.data(), 1, own, receiver, tag, MPI_COMM_WORLD, &request);
    } else {
      MPI_Irecv(to.values.data(), 1, own, sender, tag, MPI_COMM_WORLD, &request);
    }
    MPI_Type_free(&own);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!is_sender()) {
      EXPECT_TRUE(to.after(from.packed()) == to.values) << scheme;
    }
  }
}

/// Each message's datatypes end before the next ones are made, so that handles and addresses come again with other
/// layouts; there are more of them than a process tells its peers of at once.
TEST_F(FabricFaults, HandlesThatComeAgainWithOtherLayouts) {
  if (!takes_part()) return;
  force(scheme_names[multi_write]);
  int wrong = 0;
  const std::uint64_t before = messages_by(multi_write);
  constexpr int rounds = 300, most_under_way = 64;
  for (int round = 0; round < rounds; ++round) {
    // A sender that copies out is never more messages ahead than a fabric has numbers for.
    if (round % most_under_way == 0) MPI_Barrier(MPI_COMM_WORLD);
    const Side from(8 + round % 7, 1024, 1024 + 1 + round, round);
    if (is_sender()) {
      send(from, By::blocking);
      continue;
    }
    Side to((8 + round % 7) * 4, 256, 256 + 1 + (round * 5) % 311, -1);
    MPI_Status status{};
    receive(to, By::blocking, status);
    wrong += to.after(from.packed()) == to.values ? 0 : 1;
  }
  EXPECT_EQ(0, wrong);
  MPI_Barrier(MPI_COMM_WORLD);
  if (uses_fabric() && !is_sender()) {
    EXPECT_EQ(before + rounds, messages_by(multi_write));
  }
}

/// Both processes send more messages than a fabric has numbers for before either receives: those beyond go packed.
TEST_F(FabricFaults, MoreMessagesThanThereIsRoomFor) {
  if (!takes_part()) return;
  constexpr int many = 300;
  const int peer = 1 - rank();
  for (const bool waits_for_each : {true, false}) {
    const std::uint64_t before = fabric_messages();
    std::vector<MPI_Request> requests(2 * many, MPI_REQUEST_NULL);
    const Side from(20, 256, 300, rank()), theirs(20, 256, 300, peer);
    std::vector<std::vector<int>> arrived(many, std::vector<int>(20 * 512, -1));
    Side to(20, 256, 512, -1);
    for (int i = 0; i < many; ++i)
      MPI_Isend(from.values.data(), 1, from.type, peer, i, MPI_COMM_WORLD, &requests[static_cast<std::size_t>(i)]);
    for (int i = many; i-- > 0;) {
      const auto at = static_cast<std::size_t>(i);
      if (waits_for_each) {
        MPI_Recv(arrived[at].data(), 1, to.type, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Irecv(arrived[at].data(), 1, to.type, peer, i, MPI_COMM_WORLD, &requests[at + many]);
      }
    }
    MPI_Waitall(2 * many, requests.data(), MPI_STATUSES_IGNORE);
    const std::vector<int> expected = to.after(theirs.packed());
    int wrong = 0;
    for (const std::vector<int>& values : arrived) wrong += values == expected ? 0 : 1;
    EXPECT_EQ(0, wrong);
    if (uses_fabric()) {
      EXPECT_LE(before + 100, fabric_messages());
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  pass(shapes[0], By::blocking);
}

/// Ends the process, as far as its peers can tell: its memory, threads and sockets are gone. The launcher would kill
/// the survivor too, did it know.
[[noreturn]] void end_process(int) {
  const char* const launcher = std::getenv("PMI_FD");
  for (int file = 3; file < 1024; ++file) {
    if (launcher == nullptr || file != std::atoi(launcher)) ::close(file);
  }
  ::execl("/bin/sh", "sh", "-c",
          "n=0; while [ ! -s \"$GAPLESS_TEST_SURVIVOR\" ] && [ $n -lt 1000 ]; do sleep 0.1; n=$((n+1)); done", nullptr);
  ::_exit(1);
}

/// Memory of which a part ends the process that touches it: `where` is from 0, the beginning, to 1, the end.
class Deadly {
 public:
  Deadly(std::size_t bytes, bool kills, double where) : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    bytes_ = (bytes / page_ + 1) * page_;
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!kills) return;
    ::unsetenv("LD_PRELOAD");
    std::signal(SIGSEGV, end_process);
    const std::size_t first = static_cast<std::size_t>(where * static_cast<double>(bytes_)) / page_ * page_;
    ::mprotect(static_cast<std::byte*>(memory_) + first, page_, PROT_NONE);
  }
  ~Deadly() { ::munmap(memory_, bytes_); }
  Deadly(const Deadly&) = delete;
  Deadly& operator=(const Deadly&) = delete;
  void* data() const { return memory_; }

 private:
  std::size_t page_, bytes_;
  void* memory_;
};

int survive_finalize(MPI_Comm, int, void*, void*) { survive(); }

// In runs of their own, by killed_peer.sh.

/// The other process dies while it packs or unpacks: the call that waits for it ends in an error. One that is
/// `starting` has not moved a byte, and nothing else is under way that could fail.
TEST_F(FabricFaults, APeerThatDiesInAMessage) {
  const std::string_view who = who_dies();
  const bool sender_dies = who == "sender" || who == "starting sender";
  if (!sender_dies && who != "receiver" && who != "starting receiver") return;
  const bool dies = sender_dies == is_sender();
  constexpr int blocks = 4000, length = 500, stride = 600;
  const Owned type(strided(blocks, length, stride));
  const Deadly memory(std::size_t{blocks} * stride * sizeof(int), dies, who.starts_with("starting") ? 0.0 : 0.5);
  const ReturnErrors world(MPI_COMM_WORLD);
  const int code = is_sender() ? MPI_Send(memory.data(), 1, type, receiver, tag, MPI_COMM_WORLD)
                               : MPI_Recv(memory.data(), 1, type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect_peer_failure(code);
  if (!dies && !HasFailure()) survive();
  ADD_FAILURE() << "nobody has died";
}

/// Has the process ended, as end_process() does that?
bool has_ended(int process) {
  std::ifstream name("/proc/" + std::to_string(process) + "/comm");
  std::string text;
  std::getline(name, text);
  return text == "sh";
}

/// The receiver has the header and dies before it replies: the call that waits for the reply ends in an error. Of
/// another node nobody tells of that, and the send is complete once its patience is over.
TEST_F(FabricFaults, AReceiverThatDiesBeforeItsReply) {
  if (who_dies() != "replying receiver") return;
  if (!is_sender()) {
    MPI_Probe(sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ::unsetenv("LD_PRELOAD");
    end_process(0);
  }
  const Side from(256, 300, 400, 1);
  const ReturnErrors world(MPI_COMM_WORLD);
  const int code = MPI_Send(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD);
  if (setting("GAPLESS_TEST_NODES").empty()) {
    expect_peer_failure(code);
  } else {
    EXPECT_EQ(MPI_SUCCESS, code);
    EXPECT_EQ(1u, counts().copied_out);
  }
  if (!HasFailure()) survive();
  ADD_FAILURE() << "nobody has died";
}

/// The sender dies once its header has left, before the receiver replies: the receive ends in an error.
TEST_F(FabricFaults, ASenderThatDiesBeforeTheReply) {
  if (who_dies() != "offering sender") return;
  if (is_sender()) {
    const Side from(256, 300, 400, 1);
    const int process = ::getpid();
    MPI_Request request;
    MPI_Isend(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
    MPI_Send(&process, 1, MPI_INT, receiver, tag + 1, MPI_COMM_WORLD);
    ::unsetenv("LD_PRELOAD");
    end_process(0);
  }
  int process = 0;
  MPI_Recv(&process, 1, MPI_INT, sender, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  while (!has_ended(process)) ::usleep(1000);
  Side to(256, 300, 512, -1);
  const ReturnErrors world(MPI_COMM_WORLD);
  const int code = MPI_Recv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_TRUE(std::vector<int>(to.values.size(), -1) == to.values);
  expect_peer_failure(code);
  if (!HasFailure()) survive();
  ADD_FAILURE() << "nobody has died";
}

/// Either dies between the header and the reply, and the other one waits for it: the launcher ends the job, which
/// gapless's thread does not keep up.
TEST_F(FabricFaults, ALauncherEndsWhoWaitsForADeadPeer) {
  const std::string_view who = who_dies();
  if (who != "sender by signal" && who != "receiver by signal") return;
  const Side from(256, 300, 400, 1);
  int process = ::getpid();
  if (is_sender()) {
    MPI_Request request;
    MPI_Isend(from.values.data(), 1, from.type, receiver, tag, MPI_COMM_WORLD, &request);
    MPI_Send(&process, 1, MPI_INT, receiver, tag + 1, MPI_COMM_WORLD);
    if (who == "sender by signal") std::raise(SIGKILL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&process, 1, MPI_INT, sender, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (who == "receiver by signal") std::raise(SIGKILL);
    while (::kill(process, 0) == 0) ::usleep(1000);
    Side to(256, 300, 512, -1);
    MPI_Recv(to.values.data(), 1, to.type, sender, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (;;) ::pause();  // a job in which nobody has died does not end
}

/// The receiver dies before it has received what its sender has copied out: MPI_Finalize does not wait for it.
TEST_F(FabricFaults, APeerThatDiesBeforeItReceives) {
  if (who_dies() != "later receiver") return;
  if (!is_sender()) {
    MPI_Recv(nullptr, 0, MPI_INT, sender, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ::unsetenv("LD_PRELOAD");
    end_process(0);
  }
  const Side from(256, 300, 400, 1);
  send(from, By::blocking);
  EXPECT_EQ(1u, counts().copied_out);
  MPI_Send(nullptr, 0, MPI_INT, receiver, tag + 1, MPI_COMM_WORLD);
  if (HasFailure()) return;
  // The library ends attributes first, and then waits for all processes.
  int keyval;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, survive_finalize, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  MPI_Finalize();
}

}  // namespace
}  // namespace gapless::test
