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
  if (memory_ != nullptr && runtime->has_context(context_)) runtime->release(MemoryKind::device, device_, memory_);
}

bool ExportedPool::is_empty() const noexcept {
  return std::ranges::all_of(words_, [](const auto& word) { return word.load(std::memory_order_acquire) == 0; });
}

bool ExportedPool::make(int device) noexcept {
  device::Runtime* const runtime = device::runtime();
  if (runtime == nullptr || segment_bytes_ == 0 || refusals_ >= most_refusals) return false;
  const std::uint64_t context = runtime->context(device);
  void* memory = nullptr;
  const std::size_t bytes = room();
  if (context == 0 || runtime->allocate(MemoryKind::device, device, bytes, &memory) != Status::ok) {
    ++refusals_;
    return false;
  }
  device::MemoryHandle handle;
  if (runtime->export_memory(memory, handle) != Status::ok) {
    ++refusals_;
    runtime->release(MemoryKind::device, device, memory);
    return false;
  }
  handle.number = runtime->allocation_number(memory);
  memory_ = static_cast<std::byte*>(memory);
  handle_ = handle;
  device_ = device;
  context_ = context;
  return true;
}

bool ExportedPool::is_there(int device) noexcept {
  const std::lock_guard lock(mutex_);
  if (memory_ != nullptr) {
    if (device::runtime()->has_context(context_)) return device == device_;
    if (!is_empty()) return false;
    memory_ = nullptr;
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

SegmentRun ExportedPool::take(std::size_t bytes) noexcept {
  const std::size_t wanted = (bytes + segment_bytes_ - 1) / segment_bytes_;
  if (wanted == 0 || wanted > exported_segments) return {};
  const auto count = static_cast<std::uint32_t>(wanted);
  const std::lock_guard lock(mutex_);
  std::uint32_t first = find(next_, exported_segments, count);
  if (first == exported_segments) first = find(0, exported_segments, count);
  if (first == exported_segments) return {};
  lengths_[first] = static_cast<std::uint16_t>(count);
  words_[first].store(1, std::memory_order_release);
  next_ = first + count;
  return {first, count};
}

// Never destroyed: peers fetch from it as long as the process runs.
ExportedPool& own_exported_pool() noexcept {
  static ExportedPool& instance = *new ExportedPool(own_inbox().head().holds_message, pool_limit());
  return instance;
}

}  // namespace gapless::transfer::headers
