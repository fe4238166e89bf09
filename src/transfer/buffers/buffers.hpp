// Packed buffers are drawn from pools, so that a message costs no allocation once its size has been seen.
//
// Every thread has its own pools of buffers up to 16 MiB, one per kind of memory, in power-of-two size classes: no
// lock. What all threads keep unused is bounded by GAPLESS_POOL_BYTES (64 MiB unless set); a buffer that would exceed
// it is freed at once. Longer ones are kept by the process (long_buffers.hpp). Page-locked memory, used or not, is
// bounded too, and where there is no more a message goes through segments of it (segments.hpp). Buffers that a GPU uses
// end with its context: those kept are forgotten once it is another one.
//
// An error handler of the program may leave a call by longjmp, and then no destructor runs. Host buffers that belong to
// an object on the thread's stack are watched: once the thread is in a frame above that object, they are taken back.
#pragma once

#include <cstddef>

#include "device/device.hpp"
#include "transfer/buffers/buffer_memory.hpp"

namespace gapless::transfer {

/// A pooled contiguous buffer; returns to the pool of the thread that destroys it. It has room for one byte more than
/// asked for. What is assigned to an object is watched, what it was made with is not.
class PoolBuffer {
 public:
  PoolBuffer() noexcept = default;
  /// `kind` is host, pinned or device. Afterwards data() is null if there is no memory to be had.
  PoolBuffer(device::MemoryKind kind, int device, std::size_t bytes) noexcept
      : PoolBuffer(kind, device, bytes, false) {}
  /// A page-locked one without which bytes cannot move at all: no bound refuses it.
  static PoolBuffer indispensable(int device, std::size_t bytes) noexcept {
    return {device::MemoryKind::pinned, device, bytes, true};
  }
  ~PoolBuffer();
  PoolBuffer(PoolBuffer&& other) noexcept;
  PoolBuffer& operator=(PoolBuffer&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  device::MemoryKind kind() const noexcept { return place_.kind; }
  device::Location location() const noexcept { return {place_.kind, place_.device}; }
  /// False once the GPU's context that the memory belonged to is gone, and the memory with it.
  bool is_there() const noexcept { return buffer_memory::is_there(place_); }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  PoolBuffer(device::MemoryKind kind, int device, std::size_t bytes, bool is_indispensable) noexcept;

  /// Of objects below that frame, and of one that was at that place.
  static void take_back_lost(const void* frame, const void* place) noexcept;
  void watch() noexcept;
  /// False if the buffer has been taken back.
  bool stop_watching() noexcept;
  void give_back() noexcept;

  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  buffer_memory::MemoryPlace place_;
  bool is_watched_ = false;
};

/// Buffers that are in use, or kept by a thread for later messages.
std::size_t existing_buffers() noexcept;
/// Bytes the calling thread keeps in its pools for later messages. For tests.
std::size_t pooled_bytes() noexcept;
/// The bound on pooled_bytes() of all threads, from GAPLESS_POOL_BYTES. Set by tests through the second.
std::size_t pool_limit() noexcept;
void set_pool_limit(std::size_t bytes) noexcept;
/// The longest page-locked buffer that is kept, and the most page-locked memory of all buffers. They follow from
/// pool_limit().
std::size_t longest_kept_page_locked() noexcept;
std::size_t page_locked_limit() noexcept;
/// How many bytes of long buffers of one kind are kept unused.
std::size_t long_limit(device::MemoryKind kind) noexcept;
/// Frees everything that the calling thread keeps, and what calls that it has left by a jump had. Precondition: no call
/// of the thread is under way.
void drain_pools_of_thread() noexcept;
/// The same, and the long buffers of the process.
void drain_pools() noexcept;

}  // namespace gapless::transfer
