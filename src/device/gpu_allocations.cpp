#include "device/gpu_allocations.hpp"

#include "device/driver_mappings.hpp"

namespace gapless::device::gpu_allocations {
namespace {

struct Allocation {
  std::uintptr_t begin;
  std::size_t bytes;
};

/// What a thread knows, all of it true at the same count of changes.
struct Known {
  std::uint64_t changes;  ///< 0: nothing is known
  Allocation allocations[most_remembered];
  std::int16_t devices[most_remembered];
  std::uint32_t count;  ///< how many there were; the newest takes the oldest's place
};

// In the static block of thread-local storage: found by one addition, where a call would take as long as the search.
__attribute__((tls_model("initial-exec"))) constinit thread_local Known known{};

}  // namespace

int device_of(const void* pointer) noexcept {
  const std::uint64_t changes = driver_mappings::changes();
  if (changes == 0 || known.changes != changes || !driver_mappings::are_still_seen()) return -1;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (unsigned i = 0; i < most_remembered; ++i) {
    if (address - known.allocations[i].begin < known.allocations[i].bytes) return known.devices[i];
  }
  return -1;
}

void remember(std::uintptr_t begin, std::size_t bytes, int device, std::uint64_t changes_before) noexcept {
  if (changes_before == 0) return;
  if (known.changes != changes_before) {
    known = {};
    known.changes = changes_before;
  }
  const unsigned place = known.count++ % most_remembered;
  known.allocations[place] = {begin, bytes};
  known.devices[place] = static_cast<std::int16_t>(device);
}

}  // namespace gapless::device::gpu_allocations
