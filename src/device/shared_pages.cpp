#include "device/shared_pages.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <utility>

namespace gapless::device {
namespace {

/// What the owner's descriptor of that memory is called.
std::array<char, 48> name_of(std::uint64_t number) noexcept {
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "gapless-pages-%llx", static_cast<unsigned long long>(number));
  return text;
}

/// One that no allocation of a driver's has, which count from 1.
std::uint64_t next_number() noexcept {
  static constinit std::atomic<std::uint64_t> last{std::uint64_t{1} << 63};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

SharedPages& SharedPages::operator=(SharedPages&& other) noexcept {
  std::swap(segment_, other.segment_);
  std::swap(runtime_, other.runtime_);
  std::swap(device_, other.device_);
  std::swap(context_, other.context_);
  return *this;
}

SharedPages::~SharedPages() {
  if (runtime_ != nullptr && runtime_->has_context(context_)) runtime_->unlock_pages(data(), device_);
}

SharedPages SharedPages::locked(Runtime* runtime, int device, SharedSegment segment) noexcept {
  SharedPages pages;
  if (!segment) return pages;
  if (runtime != nullptr) {
    const std::uint64_t context = runtime->context(device);
    if (context == 0 || runtime->lock_pages(segment.data(), segment.size(), device) != Status::ok) return pages;
    pages.runtime_ = runtime;
    pages.device_ = device;
    pages.context_ = context;
  }
  pages.segment_ = std::move(segment);
  return pages;
}

SharedPages SharedPages::make(Runtime* runtime, int device, std::size_t bytes, MemoryHandle& handle) noexcept {
  const std::uint64_t number = next_number();
  SharedPages pages = locked(runtime, device, SharedSegment::make(name_of(number).data(), bytes, bytes));
  handle = {};
  handle.number = number;
  handle.base = reinterpret_cast<std::uintptr_t>(pages.data());
  handle.bytes = bytes;
  handle.process = ::getpid();
  handle.gpu = MemoryHandle::host;
  return pages;
}

SharedPages SharedPages::open(Runtime* runtime, int device, const MemoryHandle& handle) noexcept {
  const auto owner = static_cast<pid_t>(handle.process);
  return locked(runtime, device, SharedSegment::open(owner, name_of(handle.number).data(), handle.bytes));
}

}  // namespace gapless::device
