// Memory that can be told from GPU memory without asking the driver.
//
// Three address ranges of a process are never given to a GPU allocation while they are what they are, so nothing has to
// be remembered that could go stale: the program's own data, the heap below the break, and the part of the calling
// thread's stack that is in use. Page-locked memory in these ranges counts as host memory too: the CPU can address it.
#pragma once

namespace gapless::device {

/// Learns what does not change while the process runs. Before it is called nothing is surely host memory.
void learn_host_memory() noexcept;

/// True only if the pointer is in one of those ranges; false says nothing. No system call after a thread's first.
bool is_surely_host(const void* pointer) noexcept;

}  // namespace gapless::device
