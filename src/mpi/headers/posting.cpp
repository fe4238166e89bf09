#include "mpi/headers/posting.hpp"

#include <chrono>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "base/own_stack.hpp"
#include "mpi/lifetime/runtime.hpp"

namespace gapless::mpi::headers {

constinit std::atomic<bool> internal::threads_probe{false};

namespace {

/// For receives of other threads that have seen that no thread probes, and that the library does not have yet.
constexpr std::chrono::milliseconds time_to_reach_the_library{20};

// Never destroyed: messages may be received while the process ends.
std::shared_mutex& posting_mutex() noexcept {
  static std::shared_mutex& mutex = *new std::shared_mutex;
  return mutex;
}

/// The Posting of this thread that holds the lock.
constinit thread_local const void* holder [[gnu::tls_model("initial-exec")]] = nullptr;

/// Releases the lock of a holder that is in no frame above: a handler has left the holder's call by longjmp.
void release_left(const void* frame) noexcept {
  if (holder == nullptr || is_on_own_stack(holder, frame) || !is_on_own_stack(frame, frame)) return;
  holder = nullptr;
  posting_mutex().unlock_shared();
}

}  // namespace

void Posting::begin() noexcept {
  release_left(this + 1);
  locks_ = holder == nullptr;
  if (!locks_) return;
  posting_mutex().lock_shared();
  holder = this;
}

void Posting::end() noexcept {
  holder = nullptr;
  posting_mutex().unlock_shared();
}

Stashing::Stashing() noexcept : locks_(runtime::is_multithreaded()) {
  if (!locks_) return;
  if (!do_threads_probe()) internal::threads_probe.store(true, std::memory_order_release);
  release_left(this + 1);
  is_inside_ = holder != nullptr;
  if (is_inside_) posting_mutex().unlock_shared();
  posting_mutex().lock();
  static bool has_waited = false;  // guarded by the lock
  if (!std::exchange(has_waited, true)) std::this_thread::sleep_for(time_to_reach_the_library);
}

Stashing::~Stashing() {
  if (!locks_) return;
  posting_mutex().unlock();
  if (is_inside_) posting_mutex().lock_shared();
}

}  // namespace gapless::mpi::headers
