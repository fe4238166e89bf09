// Layouts serialised for kernels that the CPU runs.
#pragma once

#include <cstdlib>
#include <cstring>

#include "pack/cuda/descriptor_cache.hpp"

namespace gapless::tests {

/// Descriptors in ordinary memory, counted.
class HostDescriptors final : public pack::cuda::DescriptorMemory {
 public:
  void* upload(int, const void* bytes, std::size_t count) noexcept override {
    if (full) return nullptr;
    ++uploads;
    void* copy = std::malloc(count);
    std::memcpy(copy, bytes, count);
    return copy;
  }
  void release(int, void* descriptor) noexcept override {
    ++releases;
    std::free(descriptor);
  }

  bool full = false;
  int uploads = 0, releases = 0;
};

}  // namespace gapless::tests
