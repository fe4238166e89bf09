#include "device/driver.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>

namespace gapless::device::driver {
namespace {

// The few names of cuda.h that are needed, so that core builds without the toolkit. They are part of the driver's ABI.
using PointerGetAttributes = int (*)(unsigned count, int* attributes, void** values, unsigned long long pointer);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device_ordinal = 9;
constexpr unsigned memory_type_host = 1;
constexpr unsigned memory_type_device = 2;
constexpr unsigned memory_type_unified = 4;

PointerGetAttributes pointer_get_attributes = nullptr;

bool machine_has_gpu() noexcept {
  // A discrete GPU's control device or kernel module, the Windows Subsystem for Linux, and Tegra.
  for (const char* sign : {"/dev/nvidiactl", "/sys/module/nvidia", "/proc/driver/nvidia", "/dev/dxg", "/dev/nvmap"}) {
    if (access(sign, F_OK) == 0) return true;
  }
  return false;
}

}  // namespace

bool find() noexcept {
  constexpr const char* soname = "libcuda.so.1";
  void* library = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr && machine_has_gpu()) library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  pointer_get_attributes = reinterpret_cast<PointerGetAttributes>(dlsym(library, "cuPointerGetAttributes"));
  return pointer_get_attributes != nullptr;
}

Location locate(const void* pointer) noexcept {
  unsigned memory_type = 0;
  int is_managed = 0;
  int ordinal = -1;
  int attributes[] = {attribute_memory_type, attribute_is_managed, attribute_device_ordinal};
  void* values[] = {&memory_type, &is_managed, &ordinal};
  // The plural form reports unknown memory as type 0 instead of an error. Before cuInit it does fail.
  if (pointer_get_attributes(3, attributes, values, reinterpret_cast<std::uintptr_t>(pointer)) != 0) return {};
  if (is_managed != 0 || memory_type == memory_type_unified) return {MemoryKind::managed, ordinal};
  if (memory_type == memory_type_device) return {MemoryKind::device, ordinal};
  if (memory_type == memory_type_host) return {MemoryKind::pinned, ordinal};
  return {};
}

}  // namespace gapless::device::driver
