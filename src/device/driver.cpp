#include "device/driver.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "device/driver_mappings.hpp"
#include "device/gpu_allocations.hpp"
#include "device/host_pages.hpp"

namespace gapless::device::driver {
namespace {

// The few names of cuda.h that are needed, so that core builds without the toolkit. They are part of the driver's ABI.
using PointerGetAttributes = int (*)(unsigned count, int* attributes, void** values, unsigned long long pointer);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device_ordinal = 9;
constexpr int attribute_is_legacy_ipc_capable = 10;
constexpr int attribute_range_start = 11;
constexpr int attribute_range_size = 12;
constexpr int not_initialised = 3;
constexpr unsigned memory_type_host = 1;
constexpr unsigned memory_type_device = 2;
constexpr unsigned memory_type_unified = 4;

using AddressReserve = int (*)(unsigned long long* address, std::size_t bytes, std::size_t alignment,
                               unsigned long long wanted, unsigned long long flags);
using AddressFree = int (*)(unsigned long long address, std::size_t bytes);
using ExchangeCaptureMode = int (*)(int* mode);
constexpr int capture_mode_relaxed = 2;

struct Functions {
  PointerGetAttributes pointer_get_attributes;
  AddressReserve address_reserve;
  AddressFree address_free;
  ExchangeCaptureMode exchange_capture_mode;
} driver{};

template <class Function>
void find_function(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

bool any_exists(std::initializer_list<const char*> paths) noexcept {
  for (const char* path : paths) {
    if (access(path, F_OK) == 0) return true;
  }
  return false;
}

/// The Windows Subsystem for Linux and Tegra, where libcuda leaves mapping to other libraries.
bool others_map_for_the_driver() noexcept { return any_exists({"/dev/dxg", "/dev/nvmap"}); }

bool machine_has_gpu() noexcept {
  return any_exists({"/dev/nvidiactl", "/sys/module/nvidia", "/proc/driver/nvidia"}) || others_map_for_the_driver();
}

bool is_to_be_asked_each_time() noexcept {
  const char* pages = std::getenv("GAPLESS_HOST_PAGES");
  return pages != nullptr && std::string_view(pages) == "ask";
}

/// Makes the driver map something, so that it shows whether its mappings are seen: it has to ask the system whether
/// addresses are free that it is told to reserve.
void reserve_some_addresses() noexcept {
  constexpr std::size_t bytes = std::size_t{1} << 30, alignment = std::size_t{2} << 20;
  if (driver.address_reserve == nullptr || driver.address_free == nullptr || driver.exchange_capture_mode == nullptr) {
    return;
  }
  void* const space = mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return;
  munmap(space, bytes + alignment);
  const auto wanted = (reinterpret_cast<std::uintptr_t>(space) + alignment - 1) / alignment * alignment;
  // While a stream is captured, calls that might synchronise are refused and end the capture.
  int mode = capture_mode_relaxed;
  if (driver.exchange_capture_mode(&mode) != 0) return;
  unsigned long long reserved = 0;
  if (driver.address_reserve(&reserved, bytes, 0, wanted, 0) == 0) driver.address_free(reserved, bytes);
  driver.exchange_capture_mode(&mode);
}

/// Remembers the page, if it can be known when that stops being right.
void remember_host_page(const void* pointer, std::uint64_t mappings_before) noexcept {
  if (mappings_before == 0) return;
  static std::atomic<bool> tried{false};
  if (!driver_mappings::have_been_seen() && !tried.exchange(true, std::memory_order_relaxed)) reserve_some_addresses();
  host_pages::remember(pointer, mappings_before);
}

/// What every question asks.
struct Answer {
  unsigned memory_type = 0;
  int is_managed = 0;
  int ordinal = -1;
};

/// The driver's error; 0 if it answered. The plural form reports unknown memory as type 0 instead of an error.
template <std::size_t count>
int ask(const void* pointer, int (&attributes)[count], void* (&values)[count]) noexcept {
  return driver.pointer_get_attributes(count, attributes, values, reinterpret_cast<std::uintptr_t>(pointer));
}

Location location_of(const Answer& answer, const void* pointer, std::uint64_t mappings_before) noexcept {
  if (answer.is_managed != 0 || answer.memory_type == memory_type_unified) {
    return {MemoryKind::managed, answer.ordinal};
  }
  if (answer.memory_type == memory_type_device) return {MemoryKind::device, answer.ordinal};
  if (answer.memory_type == memory_type_host) return {MemoryKind::pinned, answer.ordinal};
  remember_host_page(pointer, mappings_before);
  return {};
}

bool is_initialised() noexcept {
  Answer answer;
  int attributes[] = {attribute_memory_type};
  void* values[] = {&answer.memory_type};
  return ask(&answer, attributes, values) != not_initialised;
}

/// Was the driver not initialised when its calls began to be counted? Then it is not until it calls the system.
bool was_uninitialised = false;

Location locate_by_old_driver(const void* pointer, std::uint64_t mappings_before) noexcept {
  Answer answer;
  int attributes[] = {attribute_memory_type, attribute_is_managed, attribute_device_ordinal};
  void* values[] = {&answer.memory_type, &answer.is_managed, &answer.ordinal};
  return ask(pointer, attributes, values) == 0 ? location_of(answer, pointer, mappings_before) : Location{};
}

}  // namespace

bool find() noexcept {
  constexpr const char* soname = "libcuda.so.1";
  void* library = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr && machine_has_gpu()) library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  find_function(library, "cuPointerGetAttributes", driver.pointer_get_attributes);
  find_function(library, "cuMemAddressReserve", driver.address_reserve);
  find_function(library, "cuMemAddressFree", driver.address_free);
  find_function(library, "cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode);
  if (driver.pointer_get_attributes == nullptr) return false;
  if (!is_to_be_asked_each_time() && !others_map_for_the_driver()) driver_mappings::watch(library);
  was_uninitialised = !is_initialised();
  return true;
}

Location locate(const void* pointer) noexcept {
  AddressRange allocation;
  return locate(pointer, allocation);
}

Location locate(const void* pointer, AddressRange& allocation) noexcept {
  allocation = {};
  if (was_uninitialised && driver_mappings::have_no_releases_been_made()) return {};
  if (host_pages::contains(pointer)) return {};
  if (const int device = gpu_allocations::device_of(pointer); device >= 0) return {MemoryKind::device, device};
  const std::uint64_t changes_before = driver_mappings::changes(), mappings_before = driver_mappings::count();
  Answer answer;
  AddressRange range;
  int is_plain_allocation = 0;
  int attributes[] = {attribute_memory_type,           attribute_is_managed,  attribute_device_ordinal,
                      attribute_is_legacy_ipc_capable, attribute_range_start, attribute_range_size};
  void* values[] = {&answer.memory_type,  &answer.is_managed, &answer.ordinal,
                    &is_plain_allocation, &range.begin,       &range.bytes};
  const int error = ask(pointer, attributes, values);
  if (error == not_initialised) return {};
  // Drivers before CUDA 11 refuse the whole question for the attributes that they do not know.
  if (error != 0) return locate_by_old_driver(pointer, mappings_before);
  const Location location = location_of(answer, pointer, mappings_before);
  // The range is an allocation only where cuMemAlloc made it. Elsewhere it may be a reservation (cuMemAddressReserve,
  // memory pools), parts of which lie on other GPUs, on the host, or nowhere. Memory of reservations is never capable
  // of the first kind of interprocess handles, which name whole allocations.
  if (location.kind == MemoryKind::device && is_plain_allocation != 0) {
    allocation = range;
    gpu_allocations::remember(range.begin, range.bytes, location.device, changes_before);
  }
  return location;
}

}  // namespace gapless::device::driver
