// The NVIDIA driver, found in the process or on the machine, asked only which memory a pointer names.
#pragma once

#include "device/device.hpp"

namespace gapless::device::driver {

/// Finds the driver's library: if the process has it already, or the machine shows signs of a GPU. Slow; call once.
bool find() noexcept;

/// Precondition: find() returned true. Memory the driver does not know, and all memory before the program itself
/// initialises the driver, is host memory; pages of which it said so once are not asked about again (host_pages).
Location locate(const void* pointer) noexcept;

}  // namespace gapless::device::driver
