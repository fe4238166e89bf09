// Putting functions in the place of those that one library of the process imports.
//
// A library calls the functions of others through addresses that the dynamic linker has written into it. Writing other
// addresses there (the method of GOTCHA, and of UCX where it cannot patch code) changes that library's calls alone: the
// program and every other library go on as they were.
#pragma once

#include <link.h>

#include <atomic>
#include <cstddef>
#include <span>

namespace gapless::device {

struct Redirection {
  const char* function;  ///< as the library imports it
  void* replacement;
};

/// A place in the library that holds a function's address, and what was written there.
struct RedirectedImport {
  std::atomic<void*>* place = nullptr;
  void* replacement = nullptr;

  /// False once another tool has written there.
  bool is_in_force() const noexcept { return place->load(std::memory_order_relaxed) == replacement; }
};

/// Writes the replacements, and where to into `redirected`; returns how many. All or none: 0 where the library imports
/// none of the functions, has more places than fit, or cannot be written to. Threads that call the functions meanwhile
/// reach the old or the new ones.
std::size_t redirect_imports(const link_map& library, std::span<const Redirection> redirections,
                             std::span<RedirectedImport> redirected) noexcept;

}  // namespace gapless::device
