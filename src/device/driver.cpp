#include "device/driver.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include "base/optional_library.hpp"

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
constexpr int invalid_value = 1, not_initialised = 3, deinitialised = 4;
constexpr unsigned memory_type_host = 1;
constexpr unsigned memory_type_device = 2;
constexpr unsigned memory_type_unified = 4;

PointerGetAttributes pointer_get_attributes = nullptr;

bool any_exists(std::initializer_list<const char*> paths) noexcept {
  for (const char* path : paths) {
    if (access(path, F_OK) == 0) return true;
  }
  return false;
}

bool machine_has_gpu() noexcept {
  // The last two: the Windows Subsystem for Linux, and Tegra.
  return any_exists({"/dev/nvidiactl", "/sys/module/nvidia", "/proc/driver/nvidia", "/dev/dxg", "/dev/nvmap"});
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
  return pointer_get_attributes(count, attributes, values, reinterpret_cast<std::uintptr_t>(pointer));
}

Location location_of(const Answer& answer) noexcept {
  if (answer.is_managed != 0 || answer.memory_type == memory_type_unified) {
    return {MemoryKind::managed, answer.ordinal};
  }
  if (answer.memory_type == memory_type_device) return {MemoryKind::device, answer.ordinal};
  if (answer.memory_type == memory_type_host) return {MemoryKind::pinned, answer.ordinal};
  return {};
}

/// Asks the system, which takes no signal for the answer.
bool is_readable(const void* pointer) noexcept {
  char byte;
  const iovec here{&byte, 1}, there{const_cast<void*>(pointer), 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

/// After a kernel's failure the driver answers every question with that error. What the CPU cannot read is then some
/// GPU's, on which nothing more can be done: the call ends in an error there.
Location location_without_answer(const void* pointer, int error) noexcept {
  const bool knows_no_memory = error == invalid_value || error == not_initialised || error == deinitialised;
  return knows_no_memory || is_readable(pointer) ? Location{} : Location{MemoryKind::device, 0};
}

}  // namespace

bool find() noexcept {
  return OptionalLibrary("libcuda.so.1", machine_has_gpu()).find("cuPointerGetAttributes", pointer_get_attributes);
}

Location locate(const void* pointer) noexcept {
  Answer answer;
  int attributes[] = {attribute_memory_type, attribute_is_managed, attribute_device_ordinal};
  void* values[] = {&answer.memory_type, &answer.is_managed, &answer.ordinal};
  const int error = ask(pointer, attributes, values);
  return error == 0 ? location_of(answer) : location_without_answer(pointer, error);
}

Location locate(const void* pointer, AddressRange& allocation) noexcept {
  allocation = {};
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
  if (error != 0) return locate(pointer);
  const Location location = location_of(answer);
  // The range is an allocation only where cuMemAlloc made it. Elsewhere it may be a reservation (cuMemAddressReserve,
  // memory pools), parts of which lie on other GPUs, on the host, or nowhere. Memory of reservations is never capable
  // of the first kind of interprocess handles, which name whole allocations.
  if (location.kind == MemoryKind::device && is_plain_allocation != 0) allocation = range;
  return location;
}

}  // namespace gapless::device::driver
