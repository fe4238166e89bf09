// Threads of gapless's own.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

namespace gapless {

/// A thread that takes no signals, for those are the business of the program's threads, but for what its own
/// instructions raise: a program may handle accesses to its memory, and a fault that is blocked ends the process. Not
/// joinable if there cannot be one.
template <class Work>
std::thread start_quiet_thread(Work work) noexcept {
  sigset_t others, before;
  sigfillset(&others);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&others, own);
  pthread_sigmask(SIG_SETMASK, &others, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(work));
  } catch (const std::exception&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

/// Calls end() when this process exits, for a thread that must not outlive what it works on. A child of fork() has not
/// the thread.
template <auto end>
void end_at_exit() {
  static const pid_t owner = ::getpid();
  std::atexit([] {
    if (::getpid() == owner) end();
  });
}

}  // namespace gapless
