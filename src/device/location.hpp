// Where bytes are, and who can touch them.
#pragma once

#include <cstdint>

namespace gapless::device {

enum class MemoryKind : std::uint8_t {
  host,     ///< ordinary memory
  pinned,   ///< page-locked host memory: CPU and GPU can address it
  managed,  ///< migrates: CPU and GPU can address it
  device,   ///< only the GPU (and DMA) can address it: cudaMalloc, cudaMallocAsync, virtual memory management
};

struct Location {
  MemoryKind kind = MemoryKind::host;
  int device = -1;  ///< ordinal of the owning GPU; -1 for plain host memory

  bool is_cpu_addressable() const noexcept { return kind != MemoryKind::device; }
  /// By a kernel of that GPU, which has enabled no peer.
  bool is_gpu_addressable(int gpu) const noexcept {
    return kind == MemoryKind::pinned || kind == MemoryKind::managed || (kind == MemoryKind::device && device == gpu);
  }
};

}  // namespace gapless::device
