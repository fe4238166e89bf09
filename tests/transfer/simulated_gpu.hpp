// Calls into the simulated GPU that GAPLESS_DEVICE_PLUGIN names.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

#include "simulated_device.h"

namespace gapless::tests {

struct SimulatedGpu {
#define GAPLESS_SIMULATED(member, function) \
  decltype(&function) member = reinterpret_cast<decltype(&function)>(symbol(#function));
  GAPLESS_SIMULATED(allocate, simulated_device_malloc)
  GAPLESS_SIMULATED(release, simulated_device_free)
  GAPLESS_SIMULATED(reset, simulated_device_reset)
  GAPLESS_SIMULATED(write, simulated_device_write)
  GAPLESS_SIMULATED(read, simulated_device_read)
  GAPLESS_SIMULATED(count, simulated_device_count)
  GAPLESS_SIMULATED(reset_counts, simulated_device_reset_counts)
  GAPLESS_SIMULATED(bytes_in_use, simulated_device_bytes_in_use)
  GAPLESS_SIMULATED(fail, simulated_device_fail)
  GAPLESS_SIMULATED(delay, simulated_device_delay)
#undef GAPLESS_SIMULATED

 private:
  static void* symbol(const char* name) {
    const char* path = std::getenv("GAPLESS_DEVICE_PLUGIN");
    void* library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
    void* address = library != nullptr ? dlsym(library, name) : nullptr;
    if (address == nullptr) throw std::runtime_error("GAPLESS_DEVICE_PLUGIN does not name the simulated GPU");
    return address;
  }
};

}  // namespace gapless::tests
