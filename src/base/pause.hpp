// What a thread does between two looks at a word that another processor writes.
#pragma once

namespace gapless {

/// Lets the other thread of the core run for some nanoseconds.
inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` does nothing on most processors
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace gapless
