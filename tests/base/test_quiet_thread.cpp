// Which signals a thread of gapless's own takes, and what becomes of it when its process exits.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

#include "base/quiet_thread.hpp"

namespace gapless::tests {
namespace {

/// A page that nobody may touch, until somebody does.
struct Page {
  std::size_t bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};
Page& page() {
  static Page only;
  return only;
}
std::atomic<int> accesses{0};

void open_page(int, siginfo_t* info, void*) {
  if (info->si_addr != page().memory) _exit(1);
  ++accesses;
  ::mprotect(page().memory, page().bytes, PROT_READ | PROT_WRITE);
}

/// As programs do that track who touches their memory.
TEST(QuietThread, AProgramMayHandleAccessesToItsMemory) {
  ASSERT_NE(page().memory, MAP_FAILED);
  struct sigaction ours {
  }, before{};
  ours.sa_sigaction = open_page;
  ours.sa_flags = SA_SIGINFO;
  ASSERT_EQ(0, ::sigaction(SIGSEGV, &ours, &before));
  start_quiet_thread([] { *static_cast<volatile char*>(page().memory) = 1; }).join();
  ::sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(1, accesses.load());
}

TEST(QuietThread, TakesNoSignalsOfTheProgram) {
  sigset_t blocked;
  sigemptyset(&blocked);
  start_quiet_thread([&blocked] { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); }).join();
  for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGPROF})
    EXPECT_EQ(1, sigismember(&blocked, signal));
}

/// What exit() makes of a process's status is 7 where the process ends its thread.
TEST(QuietThread, IsEndedByTheExitOfItsProcessAndNotOfAForkedChild) {
  const auto status_of = [](pid_t process) {
    int status = -1;
    ::waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  const pid_t owner = ::fork();
  ASSERT_GE(owner, 0);
  if (owner == 0) {
    end_at_exit<[] { ::_exit(7); }>();
    const pid_t child = ::fork();
    if (child == 0) std::exit(0);
    if (status_of(child) != 0) ::_exit(1);
    std::exit(0);
  }
  EXPECT_EQ(7, status_of(owner));
}

}  // namespace
}  // namespace gapless::tests
