#include "fabric/verbs/gpu_memory.hpp"

#include <unistd.h>

namespace gapless::fabric::verbs {

ibv_mr* GpuMemory::add(ibv_pd* domain, device::Runtime& runtime, void* memory, std::size_t bytes, int device,
                       int access) noexcept {
  ibv_mr* registered = nullptr;
  if (by_dma_buf_ != Way::refused)
    registered = note(by_dma_buf_, add_dma_buf(domain, runtime, memory, bytes, device, access));
  if (registered == nullptr && by_address_ != Way::refused)
    registered = note(by_address_, library_.reg_mr(domain, memory, bytes, access));
  return registered;
}

ibv_mr* GpuMemory::note(Way& way, ibv_mr* registered) noexcept {
  if (registered != nullptr) {
    way = Way::works;
  } else if (way == Way::untried) {
    way = Way::refused;
  }
  return registered;
}

ibv_mr* GpuMemory::add_dma_buf(ibv_pd* domain, device::Runtime& runtime, void* memory, std::size_t bytes, int device,
                               int access) const noexcept {
  int descriptor = -1;
  if (library_.reg_dmabuf_mr == nullptr ||
      runtime.export_to_devices(memory, bytes, device, &descriptor) != device::Status::ok)
    return nullptr;
  // Peers name the memory by its address here.
  ibv_mr* const registered =
      library_.reg_dmabuf_mr(domain, 0, bytes, reinterpret_cast<std::uintptr_t>(memory), descriptor, access);
  ::close(descriptor);  // the registration keeps the memory
  return registered;
}

}  // namespace gapless::fabric::verbs
