// This process's memory that peers unpack messages from: an allocation, in equal segments. One pool is GPU memory.
// Another pool is memory of the host, page-locked for this process's GPU if it uses one: for peers whose GPU does not
// reach the first pool, and for sides without a GPU.
//
// A message has segments in a row. The owner packs into the segments and is done; the receiver lets go of them by one
// word in the owner's inbox. So a sender waits for nobody, and its offer stays after its call has returned. The
// allocation is the pool's alone, because the driver frees no memory that a peer has mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "device/runtime.hpp"
#include "device/shared_pages.hpp"
#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::headers {

/// The segments of one message; none if `count` is 0.
struct SegmentRun {
  std::uint32_t first = 0, count = 0;
};

/// Thread-safe.
class ExportedPool {
 public:
  /// `words` are zeros, and outlive the pool. The pool gets `bytes` of memory of `kind`, device or pinned, once
  /// is_there() asks.
  ExportedPool(SegmentWords& words, std::size_t bytes, device::MemoryKind kind) noexcept
      : words_(words), segment_bytes_(bytes / exported_segments / alignment * alignment), kind_(kind) {}
  ~ExportedPool();
  ExportedPool(const ExportedPool&) = delete;
  ExportedPool& operator=(const ExportedPool&) = delete;

  device::MemoryKind kind() const noexcept { return kind_; }
  /// Is there memory on that GPU, or page-locked for that GPU, that peers may map? The pool belongs to the GPU that
  /// asks first, until that GPU has another context and the last message has been fetched. For the pool on the host, -1
  /// is the CPU.
  bool is_there(int device) noexcept;

  // Precondition of the functions below: is_there().

  const device::MemoryHandle& handle() const noexcept { return handle_; }
  /// The longest run, in bytes.
  std::size_t room() const noexcept { return segment_bytes_ * exported_segments; }
  std::size_t segment_bytes() const noexcept { return segment_bytes_; }
  /// A run of that many bytes; none unless `spare` more segments are free behind the run.
  SegmentRun take(std::size_t bytes, std::uint32_t spare = 0) noexcept;
  void give_back(SegmentRun run) noexcept { words_[run.first].store(0, std::memory_order_release); }
  std::byte* data(SegmentRun run) const noexcept { return memory_ + run.first * segment_bytes_; }

 private:
  static constexpr std::size_t alignment = 256;
  /// After so many refusals the driver is not asked again.
  static constexpr unsigned most_refusals = 4;

  bool make(int device) noexcept;
  bool lock_pages(int device) noexcept;
  std::byte* allocate(device::Runtime* runtime, int device, device::MemoryHandle& handle) noexcept;
  bool is_empty() const noexcept;
  /// The first segment of a free run within [begin, end); `end` where there is none.
  std::uint32_t find(std::uint32_t begin, std::uint32_t end, std::uint32_t count) const noexcept;

  SegmentWords& words_;
  const std::size_t segment_bytes_;
  const device::MemoryKind kind_;
  std::mutex mutex_;  ///< guards all below
  std::byte* memory_ = nullptr;
  device::SharedPages pages_;  ///< the memory of a pool on the host
  device::MemoryHandle handle_;
  int device_ = -1;
  std::uint64_t context_ = 0;  ///< 0 for pages of the CPU alone
  unsigned refusals_ = 0;
  std::uint32_t next_ = 0;                         ///< where the next message begins to look
  std::uint16_t lengths_[exported_segments] = {};  ///< the length of the run that begins at a segment whose word is set
};

/// The process's own pool in GPU memory. Precondition: is_listening().
ExportedPool& own_exported_pool() noexcept;
/// The process's own pool on the host, a quarter as long. Precondition: is_listening().
ExportedPool& own_pool_on_host() noexcept;

}  // namespace gapless::transfer::headers
