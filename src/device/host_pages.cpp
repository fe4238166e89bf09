#include "device/host_pages.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace gapless::device::host_pages {
namespace {

// A page's number and the count of mappings in one word, so that neither a lock nor a second look is needed. The
// smallest pages and the largest addresses of user space that processors have without being asked for larger ones.
constexpr int page_shift = 12;
constexpr int address_bits = 48;
constexpr int count_bits = 64 - (address_bits - page_shift);

constexpr std::uint64_t nothing = 0;  // a count of 0 is no count

std::uint64_t word_of(std::uintptr_t address, std::uint64_t mappings) noexcept {
  if (address >> address_bits != 0 || mappings >> count_bits != 0 || mappings == 0) return nothing;
  return std::uint64_t{address >> page_shift} << count_bits | mappings;
}

std::array<std::atomic<std::uint64_t>, most_remembered> remembered;

std::atomic<std::uint64_t>& place_of(std::uintptr_t address) noexcept {
  // Neighbouring pages lie side by side; arrays that are a power of two apart do not collide.
  const std::uint64_t page = address >> page_shift;
  return remembered[(page ^ page >> 12 ^ page >> 24) % most_remembered];
}

}  // namespace

bool internal::contains(const void* pointer) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::uint64_t word = word_of(address, driver_mappings::count());
  return place_of(address).load(std::memory_order_relaxed) == word && word != nothing &&
         driver_mappings::are_still_seen();
}

bool is_readable(const void* pointer) noexcept {
  // The kernel reads the set before it looks at what to do with it, and nothing is done that has no name.
  constexpr int no_such_operation = ~0;
  constexpr std::size_t set_size = 8;
  const auto set = reinterpret_cast<std::uintptr_t>(pointer) & ~std::uintptr_t{set_size - 1};
  const int error = errno;
  const bool readable = syscall(SYS_rt_sigprocmask, no_such_operation, set, nullptr, set_size) == -1 && errno == EINVAL;
  errno = error;
  return readable;
}

void remember(const void* pointer, std::uint64_t mappings_before) noexcept {
  // A sandbox that answers system calls itself may look at the operation first. Nobody can read the first page.
  static const bool tells_readable_pages = !is_readable(reinterpret_cast<const void*>(std::uintptr_t{64}));
  if (!tells_readable_pages || !driver_mappings::have_been_seen() || !is_readable(pointer)) return;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  place_of(address).store(word_of(address, mappings_before), std::memory_order_relaxed);
}

}  // namespace gapless::device::host_pages
