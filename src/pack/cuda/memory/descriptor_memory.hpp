// Descriptions of layouts in plain GPU memory.
//
// Uploads run on a stream of their own, also while a stream of the program is being captured, and nobody waits for
// them: kernels that need one are ordered behind it. Freeing GPU memory waits for all kernels of the GPU, which a
// program that frees a datatype did not ask for; so what is released is freed by a later upload, once it is much. By
// then it is known that the context is still there; releasing comes at any time, and the end of a context is none of
// its business.
#pragma once

#include <mutex>
#include <vector>

#include "pack/gpu/describe/descriptor_cache.hpp"

namespace gapless::pack::gpu {

/// Of one context, which is current when anything but release() is called.
class CudaDescriptorMemory final : public DescriptorMemory {
 public:
  Upload upload(int device, const void* bytes, std::size_t count) noexcept override;
  Arrival follow(const Upload& upload, void* stream) noexcept override;
  /// Calls no CUDA function.
  void release(int device, const Upload& upload, std::size_t count) noexcept override;
  /// Returns when the bytes are there, also while a stream is being captured; false if that failed.
  bool wait(Upload& upload) noexcept;

 private:
  void free_released() noexcept;

  std::mutex mutex_;
  std::vector<Upload> released_;
  std::size_t released_bytes_ = 0;
};

}  // namespace gapless::pack::gpu
