// Memory of the host that several processes of a node map: what two GPUs that do not reach each other's memory can both
// reach, or a GPU and another process's CPU. Each process that uses a GPU locks the pages for that GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/shared_segment.hpp"
#include "device/runtime.hpp"

namespace gapless::device {

/// Not thread-safe.
class SharedPages {
 public:
  SharedPages() noexcept = default;
  SharedPages(SharedPages&& other) noexcept { *this = static_cast<SharedPages&&>(other); }
  SharedPages& operator=(SharedPages&& other) noexcept;
  ~SharedPages();

  // Without a runtime they are for the CPU alone, and no page is locked.

  /// Zeros of this process, named by the handle; `bytes` are whole pages. Empty where the system or the driver refuses.
  static SharedPages make(Runtime* runtime, int device, std::size_t bytes, MemoryHandle& handle) noexcept;
  /// Those of another process. Empty where the system or the driver refuses.
  static SharedPages open(Runtime* runtime, int device, const MemoryHandle& handle) noexcept;

  /// Locks the pages of such that are for the CPU alone. False, and they are as before, where the driver refuses.
  bool lock(Runtime& runtime, int device) noexcept;

  std::byte* data() const noexcept { return segment_.data(); }
  explicit operator bool() const noexcept { return static_cast<bool>(segment_); }

 private:
  static SharedPages of(SharedSegment segment, Runtime* runtime, int device) noexcept;

  SharedSegment segment_;
  Runtime* runtime_ = nullptr;
  int device_ = -1;
  std::uint64_t context_ = 0;  ///< in which they are page-locked
};

}  // namespace gapless::device
