#include "base/own_stack.hpp"

#include <pthread.h>

#include <cstddef>

namespace gapless::internal {

constinit thread_local Interval own_stack;

[[gnu::cold]] Interval find_own_stack() noexcept {
  Interval stack{1, 1};
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return stack;
  void* lowest = nullptr;
  std::size_t size = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
    stack = {reinterpret_cast<std::uintptr_t>(lowest), reinterpret_cast<std::uintptr_t>(lowest) + size};
  }
  pthread_attr_destroy(&attributes);
  return stack;
}

}  // namespace gapless::internal
