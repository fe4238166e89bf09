#include "fabric/attached_memory.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace gapless::fabric {

namespace {

/// One call moves at most 2 GiB, and may move less.
bool move_all(decltype(::process_vm_readv)& move, pid_t process, std::byte* here, std::byte* there,
              std::size_t bytes) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    const iovec local{here + done, bytes - done}, remote{there + done, bytes - done};
    const ssize_t moved = move(process, &local, 1, &remote, 1, 0);
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

std::byte* bytes_at(const void* memory) noexcept { return static_cast<std::byte*>(const_cast<void*>(memory)); }

}  // namespace

bool read_attached(pid_t process, const void* from, void* to, std::size_t bytes) noexcept {
  return move_all(::process_vm_readv, process, bytes_at(to), bytes_at(from), bytes);
}

bool write_attached(pid_t process, const void* from, void* to, std::size_t bytes) noexcept {
  return move_all(::process_vm_writev, process, bytes_at(from), bytes_at(to), bytes);
}

pid_t own_thread() noexcept { return static_cast<pid_t>(::syscall(SYS_gettid)); }

bool is_thread_of(pid_t process, pid_t thread) noexcept {
  constexpr int no_signal = 0;
  return ::syscall(SYS_tgkill, process, thread, no_signal) == 0;
}

}  // namespace gapless::fabric
