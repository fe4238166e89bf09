// A GPU's memory, registered with an RDMA device: as a dma-buf of the kernel's, or by its address, which takes a module
// of the driver's (nvidia-peermem).
//
// Whether a machine has either is found by trying: the first refusal of a way is the last time that it is tried, unless
// the way has worked before.
#pragma once

#include "device/runtime.hpp"
#include "fabric/verbs/library.hpp"

namespace gapless::fabric::verbs {

class GpuMemory {
 public:
  explicit GpuMemory(const Library& library) noexcept : library_(library) {}

  /// Whole pages of one allocation of that GPU's. Null if no way is left.
  ibv_mr* add(ibv_pd* domain, device::Runtime& runtime, void* memory, std::size_t bytes, int device,
              int access) noexcept;

 private:
  enum class Way : std::uint8_t { untried, works, refused };

  ibv_mr* add_dma_buf(ibv_pd* domain, device::Runtime& runtime, void* memory, std::size_t bytes, int device,
                      int access) const noexcept;
  /// What a try has come to, noted.
  static ibv_mr* note(Way& way, ibv_mr* registered) noexcept;

  const Library& library_;
  Way by_dma_buf_ = Way::untried, by_address_ = Way::untried;
};

}  // namespace gapless::fabric::verbs
