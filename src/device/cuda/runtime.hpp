// The GPU as memory, done with the CUDA runtime.
#pragma once

#include "device/runtime.hpp"

namespace gapless::device::cuda {

/// What the driver says; a failure is noted for last_error(), and means ordinary memory.
Location locate(const void* pointer) noexcept;

class CudaRuntime final : public Runtime {
 public:
  const char* name() const noexcept override { return "cuda"; }
  int device_count() noexcept override;
  std::string describe(int device) override;
  const char* last_error() noexcept override;
  Location locate(const void* pointer) noexcept override { return cuda::locate(pointer); }
  std::uint64_t context(int device) noexcept override;
  bool has_context(std::uint64_t number) noexcept override;
  Status allocate(MemoryKind kind, int device, std::size_t bytes, void** result) noexcept override;
  void release(MemoryKind kind, int device, void* pointer) noexcept override;
  void* stream(int device) noexcept override;
  Status follow_default_stream(int device, void* stream) noexcept override;
  Status copy(void* destination, const void* source, std::size_t bytes, int device, void* stream) noexcept override;
  Status synchronize(int device, void* stream) noexcept override;
  Status query(int device, void* stream, bool& is_idle) noexcept override;
  void adopt(int device) noexcept override;
  Status enable_peer(int device, int peer) noexcept override;
  std::uint64_t gpu_number(int device) noexcept override;
  std::uint64_t allocation_number(const void* address) noexcept override;
  Status export_memory(const void* address, MemoryHandle& handle) noexcept override;
  Status open_memory(const MemoryHandle& handle, int device, void** base) noexcept override;
  void close_memory(int device, void* base) noexcept override;
  Status lock_pages(void* pages, std::size_t bytes, int device) noexcept override;
  void unlock_pages(void* pages, int device) noexcept override;
  Status export_to_devices(const void* address, std::size_t bytes, int device, int* descriptor) noexcept override;
  Status flush_writes_of_devices(int device) noexcept override;
};

}  // namespace gapless::device::cuda
