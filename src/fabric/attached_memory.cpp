#include "fabric/attached_memory.hpp"

#include <sys/uio.h>

namespace gapless::fabric {

bool read_attached(pid_t process, const void* from, void* to, std::size_t bytes) noexcept {
  // One call moves at most 2 GiB, and may move less.
  for (std::size_t done = 0; done < bytes;) {
    iovec local{static_cast<std::byte*>(to) + done, bytes - done};
    iovec remote{const_cast<std::byte*>(static_cast<const std::byte*>(from) + done), bytes - done};
    const ssize_t moved = ::process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

}  // namespace gapless::fabric
