// Other processes' memory that messages lie in, mapped here and kept mapped: mapping it takes the driver milliseconds.
//
// The driver frees no memory that is mapped somewhere, though its owner has freed it, and the owner's next allocation
// may fail for that before it can tell anybody. So what is kept mapped of one owner is half of what its GPU has free at
// most: it could all be freed and allocated again. A larger allocation is unmapped after each use. Their number has
// a bound that messages in turn between many allocations stay below: each mapping takes addresses and the driver's
// memory.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>

#include "device/runtime.hpp"
#include "device/shared_pages.hpp"

namespace gapless::device {

/// Thread-safe.
class OpenedMemory {
  struct Mapping;

 public:
  explicit OpenedMemory(Runtime& runtime) noexcept : runtime_(&runtime) {}
  /// For the CPU alone, which is device -1: memory of the host.
  OpenedMemory() noexcept = default;
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;

  /// A mapping, which stays as long as it is in use.
  class Use {
   public:
    Use() noexcept = default;
    ~Use() { end(); }
    Use(Use&& other) noexcept;
    Use& operator=(Use&& other) noexcept;

    explicit operator bool() const noexcept { return base_ != nullptr; }
    /// Where the owner's address is here. Precondition: it lies in the allocation.
    void* at(std::uint64_t owners_address) const noexcept {
      return static_cast<std::byte*>(base_) + (owners_address - owners_base_);
    }
    /// Nothing is under way in the memory any more.
    void end() noexcept;

   private:
    friend class OpenedMemory;
    OpenedMemory* opened_ = nullptr;
    Mapping* mapping_ = nullptr;  ///< there as long as it is in use
    void* base_ = nullptr;
    std::uint64_t owners_base_ = 0;
  };

  /// Maps the memory for `device`, if it is not yet; this process's own is there already. Empty where that is refused,
  /// with the reason in `status`. What the owner had at the same addresses before has been freed, and is unmapped.
  Use use(const MemoryHandle& handle, int device, Status& status) noexcept;
  /// Unmaps what process `process` has freed: its allocations of these numbers.
  void owner_has_freed(std::int64_t process, std::span<const std::uint64_t> numbers) noexcept;
  /// Unmaps all memory of process `process`, which has ended or is not to be met again.
  void owner_has_ended(std::int64_t process) noexcept;

  /// Does a mapping of that memory stay after its use?
  static bool keeps(const MemoryHandle& handle) noexcept {
    return handle.is_on_host() || handle.bytes <= handle.free_bytes / 2;
  }

  struct Counts {
    std::uint64_t open = 0, bytes = 0;  ///< now
    std::uint64_t opened = 0, closed = 0, refused = 0;
  };
  Counts counts() noexcept;

 private:
  static constexpr std::size_t most_kept = 512;

  struct Mapping {
    MemoryHandle handle;
    int device;
    std::uint64_t context;  ///< with which it ends
    void* base = nullptr;
    std::size_t users = 0;
    bool is_freed = false;  ///< by the owner
    bool is_kept = false;   ///< with all others of which that is true, within the limits
    std::uint64_t last_use = 0;
    SharedPages pages{};  ///< the mapping itself, of memory of the host
  };
  /// By the number of the allocation, which processes may have in common.
  using Mappings = std::unordered_multimap<std::uint64_t, Mapping>;

  bool is_there(const Mapping& mapping) const noexcept {
    return mapping.device < 0 || runtime_->has_context(mapping.context);
  }
  std::uint64_t context_of(int device) const noexcept { return device < 0 ? 0 : runtime_->context(device); }
  Use use_own(const MemoryHandle& handle, int device, Status& status) noexcept;
  Status open(Mapping& mapping) noexcept;
  Mapping* find(const MemoryHandle& handle, int device) noexcept;
  Mappings::iterator close(Mappings::iterator at) noexcept;
  template <class Predicate>
  void close_unused(Predicate which) noexcept;
  void end_use(Mapping& mapping) noexcept;
  void trim(std::int64_t process) noexcept;

  Runtime* const runtime_ = nullptr;
  const pid_t process_ = ::getpid();  ///< this one
  std::mutex mutex_;
  Mappings mappings_;
  std::uint64_t clock_ = 0;
  Counts counts_;
};

}  // namespace gapless::device
