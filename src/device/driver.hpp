// The NVIDIA driver, found in the process or on the machine, asked only which memory a pointer names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"

namespace gapless::device::driver {

/// Finds the driver's library: if the process has it already, or the machine shows signs of a GPU. Slow; call once.
bool find() noexcept;

/// Precondition: find() returned true. Memory the driver does not know, and all memory before the program itself
/// initialises the driver, is host memory. One question to the driver. Where it has no answer, what the CPU cannot read
/// is memory of a GPU.
Location locate(const void* pointer) noexcept;

/// Addresses that are certain to be one allocation's; none where `bytes` is 0.
struct AddressRange {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

/// Says as well for which addresses around the pointer the answer holds while the pointer's memory stays allocated; for
/// none where the driver does not say.
Location locate(const void* pointer, AddressRange& allocation) noexcept;

}  // namespace gapless::device::driver
