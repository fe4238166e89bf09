// Objects that each thread has of its own and that may be asked for until the process has ended.
#pragma once

#include <utility>

namespace gapless {

/// The calling thread's T, made when it first asks; there is one of each type. It ends with the thread's other objects.
/// Who asks after that, as static destructors do that send messages, gets a new one, which stays. Throws what making
/// one throws.
template <class T>
T& of_this_thread() {
  constinit thread_local T* object = nullptr;
  struct End {
    ~End() { delete std::exchange(object, nullptr); }
  };
  [[maybe_unused]] thread_local const End end{};
  if (object == nullptr) object = new T();
  return *object;
}

}  // namespace gapless
