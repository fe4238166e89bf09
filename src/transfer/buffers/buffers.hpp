// Packed buffers are drawn from pools, so that a message costs no allocation once its size has been seen.
//
// Every thread has its own pools of buffers up to 16 MiB, one per kind of memory, in power-of-two size classes: no
// lock. The unused buffers of all threads are bounded: by GAPLESS_POOL_BYTES (64 MiB unless set) in host memory, and by
// four times that in page-locked memory and in GPU memory, which take the driver a hundred times as long to allocate as
// a message takes. Buffers of the length that the thread has not used for longest make room for others. The process
// keeps longer buffers (long_buffers.hpp). Page-locked memory, used or not, is bounded too: where there is no more, a
// message goes through segments (transfer/segments.hpp). Buffers that a GPU uses end with the GPU's context: kept
// buffers are forgotten once the GPU has another context.
//
// An error handler of the program may leave a call by longjmp, and then no destructor runs. So host buffers of objects
// on the thread's stack are watched, and taken back once the thread is in a frame above the object.
#pragma once

#include <cstddef>

#include "device/device.hpp"
#include "transfer/buffers/buffer_memory.hpp"

namespace gapless::transfer {

/// A pooled contiguous buffer, which returns to the pool of the thread that destroys the object. The buffer has room
/// for one byte more than asked for. A buffer that is assigned to an object is watched; one that the object is made
/// with is not.
class PoolBuffer {
 public:
  PoolBuffer() noexcept = default;
  /// `kind` is host, pinned or device. data() is null if there is no memory.
  PoolBuffer(device::MemoryKind kind, int device, std::size_t bytes) noexcept
      : PoolBuffer(kind, device, bytes, false) {}
  /// A page-locked buffer without which bytes cannot move at all: no bound refuses the buffer.
  static PoolBuffer indispensable(int device, std::size_t bytes) noexcept {
    return {device::MemoryKind::pinned, device, bytes, true};
  }
  ~PoolBuffer();
  PoolBuffer(PoolBuffer&& other) noexcept;
  PoolBuffer& operator=(PoolBuffer&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  device::MemoryKind kind() const noexcept { return place_.kind; }
  device::Location location() const noexcept { return {place_.kind, place_.device}; }
  /// False once the GPU's context of the memory is gone, and the memory with it.
  bool is_there() const noexcept { return buffer_memory::is_there(place_); }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  PoolBuffer(device::MemoryKind kind, int device, std::size_t bytes, bool is_indispensable) noexcept;

  /// Takes back watched buffers of objects below that frame, and of an earlier object at that place.
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

/// How many buffers are in use, or kept for later messages.
std::size_t existing_buffers() noexcept;
/// Bytes the calling thread keeps in its pools for later messages. For tests.
std::size_t pooled_bytes() noexcept;
/// GAPLESS_POOL_BYTES, from which all limits follow. Set by tests through the second.
std::size_t pool_limit() noexcept;
void set_pool_limit(std::size_t bytes) noexcept;
/// The longest page-locked buffer that is kept, and the most page-locked memory of all buffers. They follow from
/// pool_limit().
std::size_t longest_kept_page_locked() noexcept;
std::size_t page_locked_limit() noexcept;
/// How many bytes of one kind all threads keep unused, and how many bytes of long buffers the process keeps.
std::size_t kept_limit(device::MemoryKind kind) noexcept;
std::size_t long_limit(device::MemoryKind kind) noexcept;
/// Releases one page-locked buffer that the calling thread keeps. False if it keeps none.
bool release_kept_page_locked() noexcept;
/// Frees all buffers that the calling thread keeps, and those of calls that the thread has left by longjmp.
/// Precondition: no call of the thread is under way.
void drain_pools_of_thread() noexcept;
/// The same, and frees the long buffers of the process.
void drain_pools() noexcept;

}  // namespace gapless::transfer
