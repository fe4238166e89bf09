#include "device/opened_memory.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace gapless::device {

OpenedMemory::Use::Use(Use&& other) noexcept { *this = std::move(other); }

OpenedMemory::Use& OpenedMemory::Use::operator=(Use&& other) noexcept {
  std::swap(opened_, other.opened_);
  std::swap(base_, other.base_);
  std::swap(owners_base_, other.owners_base_);
  std::swap(number_, other.number_);
  std::swap(process_, other.process_);
  std::swap(device_, other.device_);
  return *this;
}

void OpenedMemory::Use::end() noexcept {
  if (opened_ != nullptr) opened_->end_use(*this);
  opened_ = nullptr;
  base_ = nullptr;
}

OpenedMemory::Mapping* OpenedMemory::find(const MemoryHandle& handle, int device) noexcept {
  const std::uint64_t context = context_of(device);
  for (Mapping& mapping : mappings_) {
    if (mapping.handle.process == handle.process && mapping.handle.number == handle.number &&
        mapping.device == device && !mapping.is_freed && mapping.context == context) {
      return &mapping;
    }
  }
  return nullptr;
}

/// What belonged to a context that is gone is gone with it.
void OpenedMemory::close(std::size_t at) noexcept {
  const Mapping closed = std::move(mappings_[at]);
  mappings_.erase(mappings_.begin() + static_cast<std::ptrdiff_t>(at));
  const bool is_of_gpu = !closed.handle.is_on_host();
  if (is_of_gpu && is_there(closed)) runtime_->close_memory(closed.device, closed.base);
  ++counts_.closed;
}

template <class Predicate>
void OpenedMemory::close_unused(Predicate which) noexcept {
  for (std::size_t i = mappings_.size(); i-- > 0;) {
    if (mappings_[i].users == 0 && which(mappings_[i])) close(i);
  }
}

OpenedMemory::Use OpenedMemory::use_own(const MemoryHandle& handle, int device, Status& status) noexcept {
  void* const base = reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle.base));
  status = handle.is_on_host() ? Status::ok : runtime_->enable_peer(device, runtime_->locate(base).device);
  Use result;
  if (status != Status::ok) return result;
  result.base_ = base;
  result.owners_base_ = handle.base;
  return result;
}

Status OpenedMemory::open(Mapping& mapping) noexcept {
  if (!mapping.handle.is_on_host()) return runtime_->open_memory(mapping.handle, mapping.device, &mapping.base);
  mapping.pages = SharedPages::open(runtime_, mapping.device, mapping.handle);
  mapping.base = mapping.pages.data();
  return mapping.pages ? Status::ok : Status::failed;
}

OpenedMemory::Use OpenedMemory::use(const MemoryHandle& handle, int device, Status& status) noexcept {
  if (device < 0 && !handle.is_on_host()) {
    status = Status::failed;
    return {};
  }
  if (handle.process == process_) return use_own(handle, device, status);
  const std::lock_guard lock(mutex_);
  Mapping* mapping = find(handle, device);
  if (mapping == nullptr) {
    const auto is_stale = [&](const Mapping& old) {
      const bool overlaps = old.handle.contains(handle.base) || handle.contains(old.handle.base);
      return old.handle.process == handle.process && old.handle.number != handle.number && overlaps;
    };
    for (Mapping& old : mappings_) old.is_freed |= is_stale(old);
    close_unused([&](const Mapping& old) { return old.is_freed || !is_there(old); });
    try {
      mappings_.reserve(mappings_.size() + 1);
    } catch (const std::exception&) {
      status = Status::out_of_memory;
      return {};
    }
    Mapping opened{handle, device, context_of(device), nullptr};
    status = open(opened);
    if (status != Status::ok) {
      ++counts_.refused;
      return {};
    }
    ++counts_.opened;
    mapping = &mappings_.emplace_back(std::move(opened));
  }
  status = Status::ok;
  ++mapping->users;
  mapping->last_use = ++clock_;
  Use result;
  result.opened_ = this;
  result.base_ = mapping->base;
  result.owners_base_ = handle.base;
  result.number_ = handle.number;
  result.process_ = handle.process;
  result.device_ = device;
  return result;
}

void OpenedMemory::end_use(const Use& use) noexcept {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const Mapping& mapping) {
    return mapping.base == use.base_ && mapping.handle.number == use.number_ &&
           mapping.handle.process == use.process_ && mapping.device == use.device_;
  };
  const auto mapping = std::find_if(mappings_.begin(), mappings_.end(), is_it);
  if (mapping == mappings_.end()) return;
  if (--mapping->users == 0 && mapping->is_freed) {
    close(static_cast<std::size_t>(mapping - mappings_.begin()));
  }
  trim(use.process_);
}

/// The least recently used ones go first; those of other owners only for their number.
void OpenedMemory::trim(std::int64_t process) noexcept {
  for (;;) {
    std::uint64_t bytes = 0, limit = ~std::uint64_t{0};
    std::size_t oldest = mappings_.size();
    const bool are_too_many = mappings_.size() > most_kept;
    for (std::size_t i = 0; i < mappings_.size(); ++i) {
      const Mapping& mapping = mappings_[i];
      const bool is_owners = mapping.handle.process == process && !mapping.handle.is_on_host();
      if (is_owners) bytes += mapping.handle.bytes;
      if (is_owners) limit = std::min(limit, mapping.handle.free_bytes / 2);
      if (mapping.users != 0 || (!is_owners && !are_too_many)) continue;
      if (oldest == mappings_.size() || mapping.last_use < mappings_[oldest].last_use) oldest = i;
    }
    if (oldest == mappings_.size() || (bytes <= limit && !are_too_many)) return;
    close(oldest);
  }
}

void OpenedMemory::owner_has_freed(std::int64_t process, std::span<const std::uint64_t> numbers) noexcept {
  const std::lock_guard lock(mutex_);
  for (Mapping& mapping : mappings_) {
    if (mapping.handle.process != process) continue;
    mapping.is_freed |= std::find(numbers.begin(), numbers.end(), mapping.handle.number) != numbers.end();
  }
  close_unused([](const Mapping& mapping) { return mapping.is_freed; });
}

void OpenedMemory::owner_has_ended(std::int64_t process) noexcept {
  const std::lock_guard lock(mutex_);
  for (Mapping& mapping : mappings_) mapping.is_freed |= mapping.handle.process == process;
  close_unused([](const Mapping& mapping) { return mapping.is_freed; });
}

OpenedMemory::Counts OpenedMemory::counts() noexcept {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.open = mappings_.size();
  for (const Mapping& mapping : mappings_) counts.bytes += mapping.handle.bytes;
  return counts;
}

}  // namespace gapless::device
