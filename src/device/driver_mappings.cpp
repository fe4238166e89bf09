#include "device/driver_mappings.hpp"

#include <dlfcn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "device/imports.hpp"

namespace gapless::device::driver_mappings {

namespace internal {
constinit std::atomic<std::uint64_t> count{0};
constinit std::atomic<std::uint64_t> releases{0};
}  // namespace internal

namespace {

// Counted after the fact: the program gets hold of memory there only when the driver's function has returned.
void count_one() noexcept { internal::count.fetch_add(1, std::memory_order_release); }

// Counted before the fact: another thread of the program may be given the addresses at once.
void count_a_release() noexcept { internal::releases.fetch_add(1, std::memory_order_seq_cst); }

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

int counting_munmap(void* address, std::size_t length) noexcept {
  count_a_release();
  return ::munmap(address, length);
}

/// The C library's ioctl takes one argument more at most; one that was not given is read and ignored.
int counting_ioctl(int file, unsigned long request, void* argument) noexcept {
  count_a_release();
  return ::ioctl(file, request, argument);
}

/// The C library's syscall takes as many arguments as the system call has; those not given are read and ignored.
long counting_syscall(long number, long a, long b, long c, long d, long e, long f) noexcept {
  if (number == SYS_munmap || number == SYS_ioctl || number == SYS_shmdt) count_a_release();
  const long result = ::syscall(number, a, b, c, d, e, f);
  if (number == SYS_mmap || number == SYS_mremap || number == SYS_shmat) count_one();
  return result;
}

const std::array redirections{Redirection{"mmap", reinterpret_cast<void*>(&counting_mmap)},
                              Redirection{"mmap64", reinterpret_cast<void*>(&counting_mmap)},
                              Redirection{"mremap", reinterpret_cast<void*>(&counting_mremap)},
                              Redirection{"shmat", reinterpret_cast<void*>(&counting_shmat)},
                              Redirection{"munmap", reinterpret_cast<void*>(&counting_munmap)},
                              Redirection{"ioctl", reinterpret_cast<void*>(&counting_ioctl)},
                              Redirection{"syscall", reinterpret_cast<void*>(&counting_syscall)}};

std::array<RedirectedImport, 2 * redirections.size()> imports;
std::size_t import_count = 0;
bool counts_releases = false;

bool is_redirected_to(const void* replacement) noexcept {
  for (std::size_t i = 0; i < import_count; ++i) {
    if (imports[i].replacement == replacement) return true;
  }
  return false;
}

}  // namespace

void watch(void* library) noexcept {
  link_map* object = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &object) != 0 || object == nullptr) return;
  import_count = redirect_imports(*object, redirections, imports);
  counts_releases = is_redirected_to(reinterpret_cast<void*>(&counting_munmap)) &&
                    is_redirected_to(reinterpret_cast<void*>(&counting_ioctl));
  if (import_count != 0) count_one();
}

std::uint64_t changes() noexcept {
  const std::uint64_t releases = internal::releases.load(std::memory_order_acquire);
  return counts_releases && releases != 0 ? releases + count() : 0;
}

bool have_no_releases_been_made() noexcept {
  return counts_releases && internal::releases.load(std::memory_order_acquire) == 0 && are_still_seen();
}

bool are_still_seen() noexcept {
  for (std::size_t i = 0; i < import_count; ++i) {
    if (!imports[i].is_in_force()) return false;
  }
  return true;
}

}  // namespace gapless::device::driver_mappings
