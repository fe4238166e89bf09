#include "transfer/headers/exported/exported_pool.hpp"

#include <algorithm>

#include "device/device.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/headers/speakers.hpp"

namespace gapless::transfer::headers {

using device::MemoryKind;
using device::Status;

ExportedPool::~ExportedPool() {
  device::Runtime* const runtime = device::runtime();
  const bool is_on_gpu = memory_ != nullptr && kind_ == MemoryKind::device;
  if (is_on_gpu && runtime->has_context(context_)) runtime->release(kind_, device_, memory_);
}

bool ExportedPool::is_empty() const noexcept {
  return std::ranges::all_of(words_, [](const auto& word) { return word.load(std::memory_order_acquire) == 0; });
}

/// Null where the system or the driver refuses.
std::byte* ExportedPool::allocate(device::Runtime* runtime, int device, device::MemoryHandle& handle) noexcept {
  if (kind_ == MemoryKind::pinned) {
    static_assert(alignment * exported_segments % (std::size_t{64} << 10) == 0, "whole pages");
    pages_ = device::SharedPages::make(runtime, device, room(), handle);
    return pages_.data();
  }
  void* memory = nullptr;
  if (runtime->allocate(kind_, device, room(), &memory) != Status::ok) return nullptr;
  if (runtime->export_memory(memory, handle) == Status::ok) {
    handle.number = runtime->allocation_number(memory);
    return static_cast<std::byte*>(memory);
  }
  runtime->release(kind_, device, memory);
  return nullptr;
}

bool ExportedPool::make(int device) noexcept {
  const bool is_for_cpu = device < 0;
  device::Runtime* const runtime = is_for_cpu ? nullptr : device::runtime();
  if ((runtime == nullptr && !is_for_cpu) || segment_bytes_ == 0 || refusals_ >= most_refusals) return false;
  const std::uint64_t context = is_for_cpu ? 0 : runtime->context(device);
  device::MemoryHandle handle;
  std::byte* const memory = context != 0 || is_for_cpu ? allocate(runtime, device, handle) : nullptr;
  if (memory == nullptr) {
    ++refusals_;
    return false;
  }
  memory_ = memory;
  handle_ = handle;
  device_ = device;
  context_ = context;
  return true;
}

/// Pages that the CPU has had to itself are for that GPU, too.
bool ExportedPool::lock_pages(int device) noexcept {
  device::Runtime* const runtime = device::runtime();
  if (runtime == nullptr || refusals_ >= most_refusals) return false;
  if (!pages_.lock(*runtime, device)) {
    ++refusals_;
    return false;
  }
  device_ = device;
  context_ = runtime->context(device);
  return true;
}

bool ExportedPool::is_there(int device) noexcept {
  const std::lock_guard lock(mutex_);
  if (memory_ != nullptr && device < 0) return true;
  if (memory_ != nullptr && context_ == 0) return lock_pages(device);
  if (memory_ != nullptr) {
    if (device::runtime()->has_context(context_)) return device == device_ || kind_ == MemoryKind::pinned;
    if (!is_empty()) return false;
    memory_ = nullptr;
    pages_ = {};
  }
  return make(device);
}

std::uint32_t ExportedPool::find(std::uint32_t begin, std::uint32_t end, std::uint32_t count) const noexcept {
  std::uint32_t first = begin;
  for (std::uint32_t at = begin; at < end && at - first < count;) {
    const bool is_taken = words_[at].load(std::memory_order_acquire) != 0;
    at += is_taken ? lengths_[at] : 1;
    if (is_taken) first = at;
  }
  return first + count <= end ? first : end;
}

SegmentRun ExportedPool::take(std::size_t bytes, std::uint32_t spare) noexcept {
  const std::size_t wanted = (bytes + segment_bytes_ - 1) / segment_bytes_;
  if (wanted == 0 || wanted > exported_segments) return {};
  const auto count = static_cast<std::uint32_t>(wanted);
  const std::uint32_t with_spare = std::min(count + spare, exported_segments);
  const std::lock_guard lock(mutex_);
  std::uint32_t first = find(next_, exported_segments, with_spare);
  if (first == exported_segments) first = find(0, exported_segments, with_spare);
  if (first == exported_segments) return {};
  lengths_[first] = static_cast<std::uint16_t>(count);
  words_[first].store(1, std::memory_order_release);
  next_ = first + count;
  return {first, count};
}

// Never destroyed: peers fetch from it as long as the process runs.
ExportedPool& own_exported_pool() noexcept {
  static ExportedPool& instance = *new ExportedPool(own_inbox().head().holds_message, pool_limit(), MemoryKind::device);
  return instance;
}
ExportedPool& own_pool_on_host() noexcept {
  static ExportedPool& instance =
      *new ExportedPool(own_inbox().head().holds_message_on_host, pool_limit() / 4, MemoryKind::pinned);
  return instance;
}

}  // namespace gapless::transfer::headers
