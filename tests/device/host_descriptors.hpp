// Layouts serialised for kernels that the CPU runs.
#pragma once

#include <cstdlib>
#include <cstring>

#include "pack/cuda/descriptor_cache.hpp"

namespace gapless::tests {

/// Descriptors in ordinary memory, counted.
class HostDescriptors final : public pack::cuda::DescriptorMemory {
 public:
  pack::cuda::Upload upload(int, const void* bytes, std::size_t count) noexcept override {
    if (full) return {};
    ++uploads;
    void* copy = std::malloc(count);
    std::memcpy(copy, bytes, count);
    return {copy, late ? this : nullptr};
  }
  pack::cuda::Arrival follow(const pack::cuda::Upload&, void*) noexcept override {
    ++followed;
    return late ? pack::cuda::Arrival::followed : pack::cuda::Arrival::arrived;
  }
  void release(int, const pack::cuda::Upload& upload, std::size_t) noexcept override {
    ++releases;
    std::free(upload.bytes);
  }

  bool full = false;
  bool late = false;  ///< uploads are under way until this is false again
  int uploads = 0, followed = 0, releases = 0;
};

}  // namespace gapless::tests
