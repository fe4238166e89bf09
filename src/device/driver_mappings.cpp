#include "device/driver_mappings.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "device/imports.hpp"

namespace gapless::device::driver_mappings {

namespace internal {
constinit std::atomic<std::uint64_t> count{0};
}  // namespace internal

namespace {

// Counted after the fact: the program gets hold of memory there only when the driver's function has returned.
void count_one() noexcept { internal::count.fetch_add(1, std::memory_order_release); }

void* counting_mmap(void* address, std::size_t length, int protection, int flags, int file, off_t offset) noexcept {
  void* const result = ::mmap(address, length, protection, flags, file, offset);
  count_one();
  return result;
}

void* counting_mremap(void* old_address, std::size_t old_length, std::size_t length, int flags,
                      void* address) noexcept {
  void* const result = ::mremap(old_address, old_length, length, flags, address);
  count_one();
  return result;
}

void* counting_shmat(int segment, const void* address, int flags) noexcept {
  void* const result = ::shmat(segment, address, flags);
  count_one();
  return result;
}

/// The C library's syscall takes as many arguments as the system call has; those not given are read and ignored.
long counting_syscall(long number, long a, long b, long c, long d, long e, long f) noexcept {
  const long result = ::syscall(number, a, b, c, d, e, f);
  if (number == SYS_mmap || number == SYS_mremap || number == SYS_shmat) count_one();
  return result;
}

const std::array redirections{Redirection{"mmap", reinterpret_cast<void*>(&counting_mmap)},
                              Redirection{"mmap64", reinterpret_cast<void*>(&counting_mmap)},
                              Redirection{"mremap", reinterpret_cast<void*>(&counting_mremap)},
                              Redirection{"shmat", reinterpret_cast<void*>(&counting_shmat)},
                              Redirection{"syscall", reinterpret_cast<void*>(&counting_syscall)}};

std::array<RedirectedImport, 2 * redirections.size()> imports;
std::size_t import_count = 0;

}  // namespace

void watch(void* library) noexcept {
  link_map* object = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &object) != 0 || object == nullptr) return;
  import_count = redirect_imports(*object, redirections, imports);
  if (import_count != 0) count_one();
}

bool are_still_seen() noexcept {
  for (std::size_t i = 0; i < import_count; ++i) {
    if (!imports[i].is_in_force()) return false;
  }
  return true;
}

}  // namespace gapless::device::driver_mappings
