// A GPU runtime that has one GPU and refuses everything, for tests to answer what they are about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/runtime.hpp"

namespace gapless::tests {

class RefusingRuntime : public device::Runtime {
 public:
  using Status = device::Status;

  const char* name() const noexcept override { return "refusing"; }
  int device_count() noexcept override { return 1; }
  std::string describe(int) override { return {}; }
  const char* last_error() noexcept override { return ""; }
  device::Location locate(const void*) noexcept override { return {}; }
  std::uint64_t context(int) noexcept override { return 0; }
  bool has_context(std::uint64_t) noexcept override { return false; }
  Status allocate(device::MemoryKind, int, std::size_t, void**) noexcept override { return Status::failed; }
  void release(device::MemoryKind, int, void*) noexcept override {}
  void* stream(int) noexcept override { return nullptr; }
  Status follow_default_stream(int, void*) noexcept override { return Status::failed; }
  Status copy(void*, const void*, std::size_t, int, void*) noexcept override { return Status::failed; }
  Status synchronize(int, void*) noexcept override { return Status::failed; }
  Status query(int, void*, bool& is_idle) noexcept override {
    is_idle = true;
    return Status::ok;
  }
  void adopt(int) noexcept override {}
  Status enable_peer(int, int) noexcept override { return Status::failed; }
  std::uint64_t gpu_number(int) noexcept override { return 0; }
  std::uint64_t allocation_number(const void*) noexcept override { return 0; }
  Status export_memory(const void*, device::MemoryHandle&) noexcept override { return Status::failed; }
  Status open_memory(const device::MemoryHandle&, int, void**) noexcept override { return Status::failed; }
  void close_memory(int, void*) noexcept override {}
  Status lock_pages(void*, std::size_t, int) noexcept override { return Status::failed; }
  void unlock_pages(void*, int) noexcept override {}
  Status export_to_devices(const void*, std::size_t, int, int*) noexcept override { return Status::failed; }
  Status flush_writes_of_devices(int) noexcept override { return Status::failed; }
};

}  // namespace gapless::tests
