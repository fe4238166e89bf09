// Packed buffers are drawn from pools, so that a message costs no allocation once its size has been seen.
//
// Every thread has its own pools, one per kind of memory, in power-of-two size classes: no lock. What a thread keeps
// unused is bounded by GAPLESS_POOL_BYTES (64 MiB unless set) over all its pools; a buffer that would exceed it is
// freed at once. Buffers that a GPU uses end with its context: those kept are forgotten once it is another one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"

namespace gapless::transfer {

/// A pooled contiguous buffer; returns to the pool of the thread that destroys it. It has room for one byte more than
/// asked for.
class PoolBuffer {
 public:
  PoolBuffer() noexcept = default;
  /// `kind` is host, pinned or device. Afterwards data() is null if there is no memory to be had.
  PoolBuffer(device::MemoryKind kind, int device, std::size_t bytes) noexcept;
  ~PoolBuffer();
  PoolBuffer(PoolBuffer&& other) noexcept;
  PoolBuffer& operator=(PoolBuffer&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t context_ = 0;  ///< that the memory belongs to
  device::MemoryKind kind_ = device::MemoryKind::host;
  int device_ = -1;
};

/// Buffers that are in use, or kept by a thread for later messages.
std::size_t existing_buffers() noexcept;
/// Bytes the calling thread keeps in its pools for later messages.
std::size_t pooled_bytes() noexcept;
/// The bound on pooled_bytes(), from GAPLESS_POOL_BYTES. Set by tests through the second.
std::size_t pool_limit() noexcept;
void set_pool_limit(std::size_t bytes) noexcept;
/// Frees everything the calling thread keeps.
void drain_pools() noexcept;

}  // namespace gapless::transfer
