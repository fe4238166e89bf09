#include "fabric/remote/registration_cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>

namespace gapless::fabric {

RegistrationCache::~RegistrationCache() {
  for (Entry& entry : entries_) endpoint_.deregister(entry.region);
}

const Region* RegistrationCache::acquire(const void* memory, std::size_t bytes, Use use) noexcept try {
  if (const auto found = find(memory, bytes, use); found != entries_.end()) {
    ++found->users;
    found->is_alone = use == Use::alone;
    entries_.splice(entries_.begin(), entries_, found);
    return &found->region;
  }
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes + page - 1) / page * page;
  evict(bounds_.regions - std::min<std::size_t>(bounds_.regions, 1),
        bounds_.bytes - std::min(bounds_.bytes, end - begin));

  entries_.emplace_front();
  Entry& entry = entries_.front();
  Status status = endpoint_.register_memory(reinterpret_cast<void*>(begin), end - begin, entry.region);
  if (status != Status::ok) {  // the fabric may have bounds of its own
    evict(0, 0);
    status = endpoint_.register_memory(reinterpret_cast<void*>(begin), end - begin, entry.region);
  }
  if (status != Status::ok) {
    entries_.pop_front();
    return nullptr;
  }
  ++registrations_;
  bytes_ += entry.region.bytes;
  entry.users = 1;
  entry.is_alone = use == Use::alone;
  return &entry.region;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void RegistrationCache::release(const Region* region) noexcept {
  const auto entry = find(region);
  if (entry == entries_.end() || --entry->users > 0) return;
  if (entry->is_revoked || !is_kept()) {
    drop(entry);
  } else {
    evict(bounds_.regions, bounds_.bytes);
  }
}

void RegistrationCache::revoke(const Region* region) noexcept {
  const auto entry = find(region);
  if (entry == entries_.end()) return;
  entry->is_revoked = true;
  release(region);
}

std::size_t RegistrationCache::held() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.users > 0; }));
}

RegistrationCache::Entries::iterator RegistrationCache::find(const Region* region) noexcept {
  return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return &entry.region == region; });
}

/// One that may be used for that memory. Pages that are pinned may be older than the memory that is there.
RegistrationCache::Entries::iterator RegistrationCache::find(const void* memory, std::size_t bytes, Use use) noexcept {
  if (!is_kept()) return entries_.end();
  return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const bool has_place = entry.users == 0 || (use == Use::shared && !entry.is_alone);
    return has_place && !entry.is_revoked && entry.region.covers(memory, bytes);
  });
}

void RegistrationCache::drop(Entries::iterator entry) noexcept {
  bytes_ -= std::min(bytes_, entry->region.bytes);
  endpoint_.deregister(entry->region);
  entries_.erase(entry);
}

// The entry being made has no users and no handle yet: it is the first, and is left alone.
void RegistrationCache::evict(std::size_t regions, std::size_t bytes) noexcept {
  for (auto entry = entries_.end(); entry != entries_.begin() && (entries_.size() > regions || bytes_ > bytes);) {
    const auto candidate = --entry;
    if (candidate->users > 0 || candidate->region.handle == nullptr) continue;
    entry = std::next(candidate);
    drop(candidate);
  }
}

}  // namespace gapless::fabric
