// Registrations are kept for the next message from the same memory, up to a bound; the ones used longest ago go first.
//
// Where the fabric pins the pages that are there when memory is registered (Limits::follows_mappings is false), a
// program that frees memory and maps other memory at its place would be sent the old pages. There each user has a
// registration of its own, which ends with that user, unless the owner of the cache knows that memory stays.
//
// What peers write to, or reads of this process, is acquired alone: where its message fails, its registration ends at
// once, and no other message loses one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "fabric/remote/endpoint.hpp"

namespace gapless::fabric {

enum class Use : std::uint8_t {
  shared,  ///< by all who send from there
  alone,   ///< by one
};

class RegistrationCache {
 public:
  struct Bounds {
    std::size_t regions = 256;
    std::size_t bytes = std::size_t{4} << 30;
    bool memory_stays = false;  ///< keep registrations although the fabric pins pages
  };

  RegistrationCache(Endpoint& endpoint, Bounds bounds) noexcept : endpoint_(endpoint), bounds_(bounds) {}
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  /// A region that covers the memory, held until release(); null if the fabric refuses. Whole pages are registered.
  const Region* acquire(const void* memory, std::size_t bytes, Use use = Use::shared) noexcept;
  void release(const Region* region) noexcept;
  /// As release(), and nobody gets the region again: its registration ends with the last who holds it.
  void revoke(const Region* region) noexcept;

  /// Calls of register_memory that succeeded.
  std::uint64_t registrations() const noexcept { return registrations_; }
  std::size_t size() const noexcept { return entries_.size(); }
  /// Regions that have not been released.
  std::size_t held() const noexcept;

 private:
  struct Entry {
    Region region;
    std::size_t users = 0;
    bool is_alone = false;    ///< its user shares it with nobody
    bool is_revoked = false;  ///< ends with its last user
  };
  using Entries = std::list<Entry>;

  bool is_kept() const noexcept { return endpoint_.limits().follows_mappings || bounds_.memory_stays; }
  Entries::iterator find(const Region* region) noexcept;
  Entries::iterator find(const void* memory, std::size_t bytes, Use use) noexcept;
  void drop(Entries::iterator entry) noexcept;
  void evict(std::size_t regions, std::size_t bytes) noexcept;

  Endpoint& endpoint_;
  Bounds bounds_;
  Entries entries_;  ///< the one used last is the first
  std::size_t bytes_ = 0;
  std::uint64_t registrations_ = 0;
};

}  // namespace gapless::fabric
