#include "device/shared_pages.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <utility>

namespace gapless::device {
namespace {

/// What a descriptor of that memory is called, in its owner and in those that have opened it.
std::array<char, 64> name_of(pid_t owner, std::uint64_t number) noexcept {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "gapless-pages-%ld-%llx", static_cast<long>(owner),
                static_cast<unsigned long long>(number));
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

bool SharedPages::lock(Runtime& runtime, int device) noexcept {
  const std::uint64_t context = runtime.context(device);
  if (context == 0 || runtime.lock_pages(data(), segment_.size(), device) != Status::ok) return false;
  runtime_ = &runtime;
  device_ = device;
  context_ = context;
  return true;
}

SharedPages SharedPages::of(SharedSegment segment, Runtime* runtime, int device) noexcept {
  SharedPages pages;
  pages.segment_ = std::move(segment);
  const bool are_there = pages.segment_ && (runtime == nullptr || pages.lock(*runtime, device));
  return are_there ? std::move(pages) : SharedPages();
}

SharedPages SharedPages::make(Runtime* runtime, int device, std::size_t bytes, MemoryHandle& handle) noexcept {
  const std::uint64_t number = next_number();
  SharedPages pages = of(SharedSegment::make(name_of(::getpid(), number).data(), bytes, bytes), runtime, device);
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
  SharedSegment segment = SharedSegment::open(owner, name_of(owner, handle.number).data(), handle.bytes);
  // Hundreds may be open, and a process has about a thousand descriptors.
  segment.close_file();
  return of(std::move(segment), runtime, device);
}

}  // namespace gapless::device
