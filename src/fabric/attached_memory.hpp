// Cross-memory attach: one process reads another one's memory, in one copy and without the other's help.
//
// The kernel allows it to processes of one user, unless Yama, a seccomp filter or namespaces forbid it; so whoever
// wants to use it tries it first, on a word that only the right process has.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace gapless::fabric {

/// Copies `bytes` bytes at the address `from` in `process`. False if they cannot be read: what is at `to` is undefined.
/// A system call; thread-safe. A thread's number names its process: where many threads read one process's memory, each
/// by another thread of it, the system has fewer counters to share between them.
bool read_attached(pid_t process, const void* from, void* to, std::size_t bytes) noexcept;
/// The other way: to the address `to` in `process`.
bool write_attached(pid_t process, const void* from, void* to, std::size_t bytes) noexcept;
/// The calling thread's number.
pid_t own_thread() noexcept;
/// Is it a thread of that process? A number that a thread had may be another process's once the thread has ended.
bool is_thread_of(pid_t process, pid_t thread) noexcept;

}  // namespace gapless::fabric
