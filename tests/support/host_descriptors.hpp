// Layouts serialised for kernels that the CPU runs.
#pragma once

#include <cstdlib>
#include <cstring>

#include "pack/gpu/describe/descriptor_cache.hpp"

namespace gapless::tests {

/// Descriptors in ordinary memory, counted.
class HostDescriptors final : public pack::gpu::DescriptorMemory {
 public:
  pack::gpu::Upload upload(int, const void* bytes, std::size_t count) noexcept override {
    if (full) return {};
    ++uploads;
    void* copy = std::malloc(count);
    std::memcpy(copy, bytes, count);
    return {copy, late ? this : nullptr};
  }
  pack::gpu::Arrival follow(const pack::gpu::Upload&, void*) noexcept override {
    ++followed;
    return late ? pack::gpu::Arrival::followed : pack::gpu::Arrival::arrived;
  }
  void release(int, const pack::gpu::Upload& upload, std::size_t) noexcept override {
    ++releases;
    std::free(upload.bytes);
  }

  bool full = false;
  bool late = false;  ///< uploads are under way until this is false again
  int uploads = 0, followed = 0, releases = 0;
};

}  // namespace gapless::tests
