#include "device/opened_memory.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

namespace gapless::device {

OpenedMemory::Use::Use(Use&& other) noexcept { *this = std::move(other); }

OpenedMemory::Use& OpenedMemory::Use::operator=(Use&& other) noexcept {
  std::swap(opened_, other.opened_);
  std::swap(mapping_, other.mapping_);
  std::swap(base_, other.base_);
  std::swap(owners_base_, other.owners_base_);
  return *this;
}

void OpenedMemory::Use::end() noexcept {
  if (opened_ != nullptr) opened_->end_use(*mapping_);
  opened_ = nullptr;
  mapping_ = nullptr;
  base_ = nullptr;
}

OpenedMemory::Mapping* OpenedMemory::find(const MemoryHandle& handle, int device) noexcept {
  const std::uint64_t context = context_of(device);
  const auto [begin, end] = mappings_.equal_range(handle.number);
  for (auto at = begin; at != end; ++at) {
    Mapping& mapping = at->second;
    if (mapping.handle.process == handle.process && mapping.device == device && !mapping.is_freed &&
        mapping.context == context) {
      return &mapping;
    }
  }
  return nullptr;
}

/// What belonged to a context that is gone is gone with it. Returns what stands behind it.
OpenedMemory::Mappings::iterator OpenedMemory::close(Mappings::iterator at) noexcept {
  const Mapping& mapping = at->second;
  const bool is_of_gpu = !mapping.handle.is_on_host();
  if (is_of_gpu && is_there(mapping)) runtime_->close_memory(mapping.device, mapping.base);
  ++counts_.closed;
  return mappings_.erase(at);
}

template <class Predicate>
void OpenedMemory::close_unused(Predicate which) noexcept {
  for (auto at = mappings_.begin(); at != mappings_.end();) {
    at = at->second.users == 0 && which(at->second) ? close(at) : std::next(at);
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
    for (auto& [number, old] : mappings_) old.is_freed |= is_stale(old);
    close_unused([&](const Mapping& old) { return old.is_freed || !is_there(old); });
    Mappings::iterator place;
    try {
      place = mappings_.emplace(handle.number, Mapping{handle, device, context_of(device)});
    } catch (const std::exception&) {
      status = Status::out_of_memory;
      return {};
    }
    mapping = &place->second;
    status = open(*mapping);
    if (status != Status::ok) {
      ++counts_.refused;
      mappings_.erase(place);
      return {};
    }
    ++counts_.opened;
  }
  status = Status::ok;
  ++mapping->users;
  mapping->last_use = ++clock_;
  Use result;
  result.opened_ = this;
  result.mapping_ = mapping;
  result.base_ = mapping->base;
  result.owners_base_ = handle.base;
  return result;
}

/// Only what has been opened since can have gone past the limits, so that a message that maps nothing looks at no
/// others.
void OpenedMemory::end_use(Mapping& mapping) noexcept {
  const std::lock_guard lock(mutex_);
  if (--mapping.users != 0) return;
  if (mapping.is_freed) {
    close_unused([](const Mapping& freed) { return freed.is_freed; });
  } else if (!mapping.is_kept) {
    mapping.is_kept = true;
    trim(mapping.handle.process);
  }
}

/// The least recently used ones go first; those of other owners only for their number.
void OpenedMemory::trim(std::int64_t process) noexcept {
  for (;;) {
    std::uint64_t bytes = 0, limit = ~std::uint64_t{0};
    auto oldest = mappings_.end();
    const bool are_too_many = mappings_.size() > most_kept;
    for (auto at = mappings_.begin(); at != mappings_.end(); ++at) {
      const Mapping& mapping = at->second;
      const bool is_owners = mapping.handle.process == process && !mapping.handle.is_on_host();
      if (is_owners) bytes += mapping.handle.bytes;
      if (is_owners) limit = std::min(limit, mapping.handle.free_bytes / 2);
      if (mapping.users != 0 || (!is_owners && !are_too_many)) continue;
      if (oldest == mappings_.end() || mapping.last_use < oldest->second.last_use) oldest = at;
    }
    if (oldest == mappings_.end() || (bytes <= limit && !are_too_many)) return;
    close(oldest);
  }
}

void OpenedMemory::owner_has_freed(std::int64_t process, std::span<const std::uint64_t> numbers) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [number, mapping] : mappings_) {
    if (mapping.handle.process != process) continue;
    mapping.is_freed |= std::find(numbers.begin(), numbers.end(), mapping.handle.number) != numbers.end();
  }
  close_unused([](const Mapping& mapping) { return mapping.is_freed; });
}

void OpenedMemory::owner_has_ended(std::int64_t process) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [number, mapping] : mappings_) mapping.is_freed |= mapping.handle.process == process;
  close_unused([](const Mapping& mapping) { return mapping.is_freed; });
}

OpenedMemory::Counts OpenedMemory::counts() noexcept {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.open = mappings_.size();
  for (const auto& [number, mapping] : mappings_) counts.bytes += mapping.handle.bytes;
  return counts;
}

}  // namespace gapless::device
