// The stack that the system has given the calling thread.
//
// Of two addresses in that stack, the lower one belongs to the later call. A thread that runs on a stack of the
// program's own making (coroutines, user-level threads) has its frames elsewhere, and nothing is said of them.
#pragma once

#include <cstdint>

namespace gapless {

namespace internal {

struct Interval {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool contains(std::uintptr_t address) const noexcept { return address - begin < end - begin; }
};

/// Few bytes in the static block of thread-local storage: found by one addition where a call would double the cost.
/// Ends at 0 until it is known.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Interval own_stack;
/// Kept out of the way of the threads that have asked before. An interval that contains nothing if the system does not
/// say.
Interval find_own_stack() noexcept;

}  // namespace internal

/// Is that the address of something on the calling thread's stack, in a frame that has not ended? `frame` is the
/// caller's own. No system call after a thread's first.
inline bool is_on_own_stack(const void* pointer, const void* frame) noexcept {
  internal::Interval& stack = internal::own_stack;
  if (stack.end == 0) [[unlikely]]
    stack = internal::find_own_stack();
  const auto address = reinterpret_cast<std::uintptr_t>(pointer), lowest = reinterpret_cast<std::uintptr_t>(frame);
  return stack.contains(lowest) && address >= lowest && address < stack.end;
}

}  // namespace gapless
