// Which way messages of endpoints go: between processes of a node through shared memory and each other's memory, and by
// the library where the system refuses these. Refusals are real ones, of a seccomp filter; filters add up, so the tests
// stand in the order in which less and less is allowed.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <thread>
#include <vector>

#include "on_endpoints.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

/// In the order of transfer::EndpointMessages.
struct Counts {
  std::uint64_t copied = 0, lent = 0, attached = 0, in_outbox = 0, by_library = 0, by_both = 0;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.copied << " copied, " << counts.lent << " lent, " << counts.attached << " attached, "
             << counts.in_outbox << " in outboxes, " << counts.by_library << " by the library";
}

Counts counts_so_far() {
  Counts counts;
  const auto function = reinterpret_cast<void (*)(Counts*)>(core_function("gapless_endpoint_statistics"));
  if (function != nullptr) function(&counts);
  return counts;
}

enum class Mode { standard, synchronous, buffered };
constexpr std::array modes{Mode::standard, Mode::synchronous, Mode::buffered};
/// Around what a cell holds, what lies beside the cells, and several pages; in ints.
constexpr std::array lengths{0, 1, 6, 7, 2047, 2048, 2049, 5000, 300000};
constexpr int each_process = 2;

int word(int source, int to, int number, int i) { return 1000003 * source + 10007 * to + 101 * number + i; }

/// The i-th int of a message lies at 2 i in a strided buffer.
MPI_Datatype strided_type(int length) {
  MPI_Datatype type;
  MPI_Type_vector(length, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

/// Buffers are as they are for odd messages, and strided for those of every other number, at the sender, the receiver,
/// or both.
bool is_strided_at_sender(int number) { return number % 2 == 1; }
bool is_strided_at_receiver(int number) { return number / 2 % 2 == 1; }

struct Buffer {
  explicit Buffer(int length, bool is_strided)
      : stride(is_strided ? 2 : 1),
        memory(static_cast<std::size_t>(length) * static_cast<std::size_t>(stride) + 1, -7) {
    if (is_strided) type = strided_type(length);
    count = is_strided ? 1 : length;
  }
  ~Buffer() {
    if (stride == 2) MPI_Type_free(&type);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  int& at(int i) { return memory[static_cast<std::size_t>(i) * static_cast<std::size_t>(stride)]; }

  int stride, count = 0;
  std::vector<int> memory;
  MPI_Datatype type = MPI_INT;
};

MPI_Request start(Buffer& buffer, Mode mode, int to, int tag, MPI_Comm comm) {
  MPI_Request request;
  const auto call = mode == Mode::standard ? MPI_Isend : mode == Mode::synchronous ? MPI_Issend : MPI_Ibsend;
  call(buffer.memory.data(), buffer.count, buffer.type, to, tag, comm, &request);
  return request;
}

/// Wrong ints of a buffer that has received `length` of them; what lies between them is as it was.
int wrong_in(Buffer& buffer, int length, int source, int to, int number) {
  int wrong = 0;
  for (int i = 0; i < length; ++i) wrong += buffer.at(i) != word(source, to, number, i);
  for (std::size_t i = 1; buffer.stride == 2 && i < buffer.memory.size(); i += 2) wrong += buffer.memory[i] != -7;
  return wrong + (buffer.memory.back() != -7);
}

/// Each sends each, itself too, a message of every length in every mode; before its receives are posted, or after.
int exchange(MPI_Comm comm) {
  const int me = rank(comm), all = size(comm);
  int wrong = 0, number = 0;
  for (const int length : lengths) {
    for (const Mode mode : modes) {
      std::vector<std::unique_ptr<Buffer>> out, in;
      std::vector<MPI_Request> requests;
      const auto receive = [&] {
        for (int from = 0; from < all; ++from) {
          Buffer& buffer = *in.emplace_back(std::make_unique<Buffer>(length, is_strided_at_receiver(number)));
          MPI_Irecv(buffer.memory.data(), buffer.count, buffer.type, from, number, comm, &requests.emplace_back());
        }
      };
      const bool expected = (number / 4 + me) % 2 == 0;
      if (expected) receive();
      for (int to = 0; to < all; ++to) {
        Buffer& buffer = *out.emplace_back(std::make_unique<Buffer>(length, is_strided_at_sender(number)));
        for (int i = 0; i < length; ++i) buffer.at(i) = word(me, to, number, i);
        requests.push_back(start(buffer, mode, to, number, comm));
      }
      if (!expected) receive();
      wrong += MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE) != MPI_SUCCESS;
      for (int from = 0; from < all; ++from)
        wrong += wrong_in(*in[static_cast<std::size_t>(from)], length, from, me, number);
      ++number;
    }
  }
  return wrong;
}

/// What exchange() sends from the endpoints of a process to each process, in the ways that are there.
struct Ways {
  bool memory = true, attach = true;
};
Counts expected_counts(Ways ways) {
  Counts counts;
  for (const int length : lengths) {
    for (const Mode mode : modes) {
      const bool is_short = length <= 2048 && mode != Mode::synchronous;
      const bool goes_to_outbox = length <= 5000 && mode != Mode::synchronous;
      for (int process = 0; process < size(); ++process) {
        const bool is_mine = process == rank();
        std::uint64_t& way = !is_mine && !ways.memory ? counts.by_library
                             : is_short               ? counts.copied
                             : is_mine                ? counts.lent
                             : goes_to_outbox         ? counts.in_outbox
                             : ways.attach            ? counts.attached
                                                      : counts.by_library;
        way += each_process * each_process;
      }
    }
  }
  return counts;
}

/// Frees endpoints without a message, so that what is counted are those of exchange() alone.
void check(Ways ways) {
  std::vector<char> room(64 << 20);
  MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
  const Counts before = counts_so_far();
  EXPECT_EQ(0, on_endpoints(each(each_process), exchange));
  const Counts after = counts_so_far();
  const Counts sent{after.copied - before.copied,         after.lent - before.lent,
                    after.attached - before.attached,     after.in_outbox - before.in_outbox,
                    after.by_library - before.by_library, 0};  // how many are copied by both depends on the time
  EXPECT_EQ(expected_counts(ways), sent);
  void* memory = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&memory, &bytes);
}

/// Long messages to the next process, each told of by its number. Ends when the sender has copied a part of one, or
/// after so many.
int wrong_long_messages(int most) {
  constexpr int length = 300001;
  int wrong = 0;
  for (int number = 0; number < most; ++number) {
    const Counts before = counts_so_far();
    wrong += on_endpoints(each(1), [number](MPI_Comm comm) {
      const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
      std::vector<int> out(length), in(length + 1, -7);
      for (int i = 0; i < length; ++i) out[static_cast<std::size_t>(i)] = word(me, to, number, i);
      MPI_Request request;
      MPI_Irecv(in.data(), length, MPI_INT, from, 0, comm, &request);
      MPI_Send(out.data(), length, MPI_INT, to, 0, comm);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      int differing = in.back() != -7;
      for (int i = 0; i < length; ++i) differing += in[static_cast<std::size_t>(i)] != word(from, me, number, i);
      return differing;
    });
    int copied_by_both = counts_so_far().by_both > before.by_both ? 1 : 0, anywhere = 0;
    MPI_Allreduce(&copied_by_both, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (anywhere != 0) break;
  }
  return wrong;
}

/// From now on the system call ends in EPERM for all threads. False where filters are refused.
bool forbid(unsigned call) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

bool are_headers_wanted() {
  const char* headers = std::getenv("GAPLESS_HEADERS");
  return headers == nullptr || *headers != '0';
}

TEST(Messages, GoThroughMemoryBetweenProcessesOfANode) {
  if (!are_headers_wanted()) GTEST_SKIP() << "GAPLESS_HEADERS=0";
  check({});
}

TEST(Messages, OfMuchMemoryAreCopiedByBothProcesses) {
  if (!are_headers_wanted() || size() < 2) GTEST_SKIP() << "no other process's memory is read";
  EXPECT_EQ(0, wrong_long_messages(2000));
  std::uint64_t here = counts_so_far().by_both, anywhere = 0;
  MPI_Allreduce(&here, &anywhere, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_LT(0U, anywhere);
}

/// A message is read by the thread that has sent it, which may have ended meanwhile.
TEST(Messages, OfAThreadThatHasEndedAreRead) {
  Endpoints endpoints(each(1));
  ASSERT_EQ(MPI_SUCCESS, endpoints.code);
  MPI_Comm& comm = endpoints.handles().front();
  constexpr int length = 50000;
  const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
  std::vector<int> out(length), in(length);
  for (int i = 0; i < length; ++i) out[static_cast<std::size_t>(i)] = word(me, to, 0, i);
  MPI_Request sent = MPI_REQUEST_NULL;
  std::thread([&] { MPI_Isend(out.data(), length, MPI_INT, to, 0, comm, &sent); }).join();
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(MPI_SUCCESS, MPI_Recv(in.data(), length, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE));
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&sent, MPI_STATUS_IGNORE));
  int wrong = 0;
  for (int i = 0; i < length; ++i) wrong += in[static_cast<std::size_t>(i)] != word(from, me, 0, i);
  EXPECT_EQ(0, wrong);
  EXPECT_EQ(MPI_SUCCESS, MPI_Comm_free(&comm));
}

/// More buffered sends of long messages than a ring has loans, all of which are begun before any is received.
TEST(Messages, ForWhichNoLoanIsLeftKeepTheirBytes) {
  EXPECT_EQ(0, on_endpoints(each(1), [](MPI_Comm comm) {
              constexpr int messages = 80, length = 75000;
              const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
              std::vector<int> numbers(length);
              int wrong = 0;
              for (int number = 0; number < messages; ++number) {
                for (int i = 0; i < length; ++i) numbers[static_cast<std::size_t>(i)] = word(me, to, number, i);
                wrong += MPI_Bsend(numbers.data(), length, MPI_INT, to, number, comm) != MPI_SUCCESS;
              }
              MPI_Barrier(comm);
              for (int number = 0; number < messages; ++number) {
                MPI_Recv(numbers.data(), length, MPI_INT, from, number, comm, MPI_STATUS_IGNORE);
                for (int i = 0; i < length; ++i)
                  wrong += numbers[static_cast<std::size_t>(i)] != word(from, me, number, i);
              }
              return wrong;
            }));
}

/// Nobody receives before all are sent, so what the outbox has no room for goes another way.
TEST(Messages, ForWhichTheOutboxHasNoRoomKeepTheirBytes) {
  if (!are_headers_wanted() || size() < 2) GTEST_SKIP() << "there is no outbox";
  const Counts before = counts_so_far();
  constexpr int messages = 80, length = 8000;
  EXPECT_EQ(0, on_endpoints(each(1), [](MPI_Comm comm) {
              const int me = rank(comm), all = size(comm), to = (me + 1) % all, from = (me + all - 1) % all;
              std::vector<std::vector<int>> out(messages, std::vector<int>(length));
              std::vector<MPI_Request> requests(messages);
              for (int number = 0; number < messages; ++number) {
                std::vector<int>& numbers = out[static_cast<std::size_t>(number)];
                for (int i = 0; i < length; ++i) numbers[static_cast<std::size_t>(i)] = word(me, to, number, i);
                MPI_Isend(numbers.data(), length, MPI_INT, to, number, comm,
                          &requests[static_cast<std::size_t>(number)]);
              }
              MPI_Barrier(comm);
              std::vector<int> in(length);
              int wrong = 0;
              for (int number = messages; number-- > 0;) {
                MPI_Recv(in.data(), length, MPI_INT, from, number, comm, MPI_STATUS_IGNORE);
                for (int i = 0; i < length; ++i) wrong += in[static_cast<std::size_t>(i)] != word(from, me, number, i);
              }
              return wrong + (MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE) != MPI_SUCCESS);
            }));
  EXPECT_EQ(before.in_outbox + 64, counts_so_far().in_outbox);
}

TEST(Messages, GoByTheLibraryWhereHeadersAreNotWanted) {
  if (are_headers_wanted()) GTEST_SKIP() << "GAPLESS_HEADERS is not 0";
  check({.memory = false, .attach = false});
}

/// Libraries that read other processes' memory themselves do not expect to be stopped in the middle, so these tests run
/// with that switched off in them.
#define SKIP_WITHOUT_FILTER(call)                                 \
  if (!are_headers_wanted()) GTEST_SKIP() << "GAPLESS_HEADERS=0"; \
  if (!forbid(call)) GTEST_SKIP() << "the system takes no seccomp filter"

TEST(Refusals, OfWritesLeaveLongMessagesToTheReceiver) {
  SKIP_WITHOUT_FILTER(SYS_process_vm_writev);
  const std::uint64_t before = counts_so_far().by_both;
  check({});
  EXPECT_EQ(0, wrong_long_messages(20));
  EXPECT_EQ(before, counts_so_far().by_both);
}

TEST(Refusals, OfAttachLeaveLongMessagesToTheLibrary) {
  SKIP_WITHOUT_FILTER(SYS_process_vm_readv);
  check({.attach = false});
}

TEST(Refusals, OfMemoryForRingsLeaveAllToTheLibrary) {
  SKIP_WITHOUT_FILTER(SYS_fallocate);
  check({.memory = false, .attach = false});
}

TEST(Refusals, OfSharedMemoryLeaveAllToTheLibrary) {
  SKIP_WITHOUT_FILTER(SYS_memfd_create);
  check({.memory = false, .attach = false});
}

}  // namespace
}  // namespace gapless::test
