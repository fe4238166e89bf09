// Where an endpoint leaves messages for endpoints of other processes, which copy them from there: memory that the node
// shares, one piece for each sender.
//
// To read another process's memory is one copy in place of two, but at each call, and at each page, the system takes
// locks that all threads of a process have in common (docs/decisions-endpoints.md). Copies through an outbox take none,
// and their sender need not wait.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

/// Zeros at first.
struct OutboxMemory {
  static constexpr int unit_count = 64;
  static constexpr MPI_Count unit_bytes = 32 << 10;
  /// A line for each, as every reader writes its own.
  struct alignas(64) Taken {
    std::atomic<std::uint32_t> after_ns;  ///< how long its reader has copied it; 0: not yet
  };
  std::array<Taken, unit_count> taken;  ///< by the message's first unit
  alignas(64) std::array<std::byte, unit_count * unit_bytes> bytes;

  std::byte* at(int unit) noexcept { return &bytes[static_cast<std::size_t>(unit * unit_bytes)]; }
  /// The reader has copied the message that begins there.
  void end(int unit, std::uint32_t ns) noexcept {
    taken[static_cast<std::size_t>(unit)].after_ns.store(ns == 0 ? 1 : ns, std::memory_order_release);
  }
};

/// The sender's part of its outbox. Not thread-safe.
class Outbox {
 public:
  /// Of one message.
  static constexpr MPI_Count most_bytes = OutboxMemory::unit_count / 4 * OutboxMemory::unit_bytes;

  void open(OutboxMemory& memory) noexcept { memory_ = &memory; }
  bool is_open() const noexcept { return memory_ != nullptr; }

  /// The first unit of room for so many bytes, at most `most_bytes`; -1 if readers have not taken enough yet. `taken`
  /// is called with the bytes, and the nanoseconds of the longer of its two copies, of each message that a reader has
  /// taken.
  template <class Taken>
  int claim(MPI_Count bytes, Taken taken) noexcept {
    constexpr int most_behind = 8;  // units: what is used again soon is in the processor's cache
    int unit = behind_ < most_behind ? find(bytes) : -1;
    if (unit < 0) {
      take_back(taken);
      behind_ = 0;
      unit = find(bytes);
    }
    if (unit >= 0) occupy(unit, bytes);
    return unit;
  }
  std::byte* at(int unit) const noexcept { return memory_->at(unit); }
  /// The claimed room has its message, which it took so long to copy.
  void note_copied(int unit, std::uint32_t ns) noexcept { entries_[static_cast<std::size_t>(unit)].ns = ns; }
  /// Nobody will read it.
  void withdraw(int unit) noexcept;

  bool is_refused = false;  ///< there is no memory for it

 private:
  struct Entry {
    MPI_Count bytes;
    std::uint32_t ns;
  };
  static std::uint64_t units_of(MPI_Count bytes) noexcept;
  int find(MPI_Count bytes) const noexcept;
  void occupy(int unit, MPI_Count bytes) noexcept;
  template <class Taken>
  void take_back(Taken taken) noexcept {
    for (std::uint64_t units = under_way_; units != 0; units &= units - 1) {
      const int unit = std::countr_zero(units);
      const std::uint32_t ns = memory_->taken[static_cast<std::size_t>(unit)].after_ns.load(std::memory_order_acquire);
      if (ns == 0) continue;
      const Entry& entry = entries_[static_cast<std::size_t>(unit)];
      taken(entry.bytes, std::max(entry.ns, ns));
      withdraw(unit);
    }
  }

  OutboxMemory* memory_ = nullptr;
  std::uint64_t free_ = ~std::uint64_t{0};  ///< units
  std::uint64_t under_way_ = 0;             ///< first units of messages
  std::array<Entry, OutboxMemory::unit_count> entries_{};
  int behind_ = 0;  ///< units claimed since it was looked which messages are taken
};

}  // namespace gapless::mpi::endpoints
