#include "job.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace gapless::test::differential {
namespace {

// A signal handler reaches nothing but these.
const Job* noted_job = nullptr;
thread_local int thread_number = 0;

constexpr std::int64_t number_of(State state) { return static_cast<std::int64_t>(state); }
constexpr std::int64_t number_of(int ordinal, Stage stage) {
  return std::int64_t{4} * ordinal + static_cast<std::int64_t>(stage) + 1;
}

extern "C" void note_signal(int signal) {
  Slot& slot = noted_job->mine(thread_number);
  slot.detail = signal;
  slot.state = number_of(State::signal);
  std::array<void*, 40> frames;
  backtrace_symbols_fd(frames.data(), backtrace(frames.data(), static_cast<int>(frames.size())), STDERR_FILENO);
  _exit(128 + signal);
}

extern "C" void note_exit() {
  for (int thread = 0; thread < max_threads; ++thread) {
    auto running = number_of(State::running);
    noted_job->mine(thread).state.compare_exchange_strong(running, number_of(State::left_early));
  }
}

}  // namespace

Job::Job(const char* path, int rank, int ranks) : rank_(rank), ranks_(ranks) {
  constexpr std::size_t bytes = sizeof(Slot) * max_threads * max_ranks;
  const int file = open(path, O_RDWR);
  void* memory = file < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED || ranks > max_ranks) {
    std::perror(path);
    std::exit(2);
  }
  close(file);
  slots_ = static_cast<Slot*>(memory);
}

void Job::reach(int thread, int ordinal, Stage stage) const { mine(thread).stage = number_of(ordinal, stage); }

void Job::wait_for(int rank, int thread, int ordinal, Stage stage, const std::function<void()>& progress) const {
  while (slot(rank, thread).stage < number_of(ordinal, stage)) {
    progress();
    sched_yield();
  }
}

void Job::wait_for_all(int thread, int ordinal, Stage stage, const std::function<void()>& progress) const {
  for (int rank = 0; rank < ranks_; ++rank) wait_for(rank, thread, ordinal, stage, progress);
}

void Job::note_ends() const {
  noted_job = this;
  std::array<void*, 4> frames;
  backtrace(frames.data(), static_cast<int>(frames.size()));  // loads its library now, not in a handler
  static std::array<char, 1 << 16> stack;
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
  std::atexit(note_exit);
}

void set_thread_number(int thread) { thread_number = thread; }

}  // namespace gapless::test::differential
