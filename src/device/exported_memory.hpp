// What this process tells others of its GPU memory: handles, and which of them name nothing any more.
//
// An allocation is exported once and found again by its number, which the driver gives to no other. Peers keep mapped
// what they have been told of, and the driver keeps it until they have unmapped it, so they must be told what is freed.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

#include "device/runtime.hpp"

namespace gapless::device {

/// Thread-safe.
class ExportedMemory {
 public:
  explicit ExportedMemory(Runtime& runtime) noexcept : runtime_(runtime) {}

  /// The handle of the allocation that the address lies in. One that is refused is remembered as such, so that a
  /// refusal costs no more than the question for the allocation's number.
  Status handle_of(const void* address, MemoryHandle& handle) noexcept;
  /// Writes the numbers of exported allocations that are not there any more, and forgets them: as many as there is
  /// room for. To be asked before a handle is sent, and to be sent with it.
  std::size_t take_freed(std::span<std::uint64_t> numbers) noexcept;

 private:
  static constexpr std::size_t most = 64;

  struct Entry {
    MemoryHandle handle;
    Status status = Status::ok;
    bool is_used = false;
  };

  bool is_there(const Entry& entry) noexcept;

  Runtime& runtime_;
  std::mutex mutex_;
  std::array<Entry, most> entries_{};
  std::size_t next_ = 0;  ///< whose place a new one takes
};

}  // namespace gapless::device
