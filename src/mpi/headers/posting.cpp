#include "mpi/headers/posting.hpp"

#include "mpi/lifetime/runtime.hpp"

namespace gapless::mpi::headers {

constinit std::atomic<bool> internal::threads_probe{false};

// Never destroyed: messages may be received while the process ends.
std::shared_mutex& internal::posting_mutex() noexcept {
  static std::shared_mutex& mutex = *new std::shared_mutex;
  return mutex;
}

Stashing::Stashing() noexcept : locks_(runtime::is_multithreaded()) {
  if (!locks_) return;
  if (!do_threads_probe()) internal::threads_probe.store(true, std::memory_order_release);
  internal::posting_mutex().lock();
}

Stashing::~Stashing() {
  if (locks_) internal::posting_mutex().unlock();
}

}  // namespace gapless::mpi::headers
