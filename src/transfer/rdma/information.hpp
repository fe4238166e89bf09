// What two processes tell each other before a message travels by RDMA: the rendezvous of Wu et al., 2003, section 5.
//
// The sender offers, the receiver chooses and replies. Offer and reply are plain values that a header, a pipe or any
// other channel may carry. Each process tells addresses of its own. Where the sender needs the receiver's layout
// (multi-write), the layout travels beside the reply.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/remote/endpoint.hpp"

namespace gapless::transfer::rdma {

enum class Scheme : std::uint8_t { pipelined, gather_write, scatter_read, multi_write };
inline constexpr std::size_t scheme_count = 4;
const char* name(Scheme scheme) noexcept;

/// A side's memory as choices see it.
struct Blocks {
  std::uint64_t bytes = 0;    ///< of the message
  std::uint64_t count = 0;    ///< contiguous blocks of all repetitions
  std::uint64_t longest = 0;  ///< bytes
  std::uint64_t reach = 0;    ///< bytes from the first block to the last, gaps included
  friend bool operator==(const Blocks&, const Blocks&) = default;
};

/// Staging segments of a process, in one registered region.
struct PoolInformation {
  fabric::RemoteAddress address = 0;
  std::uint64_t key = 0;
  std::uint64_t segment_bytes = 0;
  fabric::RemoteAddress bell = 0;  ///< for writes that only carry an immediate; the pool's key
  fabric::RemoteAddress mail = 0;  ///< for the reply to this message (mailbox_bytes); the pool's key
  friend bool operator==(const PoolInformation&, const PoolInformation&) = default;
};

struct Offer {
  Blocks blocks;
  std::uint32_t transfer = 0;   ///< the sender's number of this message
  std::uint32_t schemes = ~0u;  ///< bits by Scheme: those that the sender's memory can go by
  PoolInformation pool;
};

/// Part of the receiver's memory, registered.
struct UserRegion {
  std::uint64_t memory = 0;  ///< the virtual address
  std::uint64_t bytes = 0;
  fabric::RemoteAddress address = 0;
  std::uint64_t key = 0;
};

/// The most bytes of a reply with all that goes beside it.
inline constexpr std::size_t mailbox_bytes = 4096;

inline constexpr std::size_t most_window = 16;
inline constexpr std::size_t most_user_regions = 8;

struct Reply {
  Scheme scheme = Scheme::pipelined;
  std::uint32_t transfer = 0;  ///< the receiver's number of this message
  PoolInformation pool;
  std::uint64_t segment_bytes = 0;
  std::uint32_t window = 0;  ///< how many segments may be under way
  std::array<std::uint16_t, most_window>
      segments{};                  ///< pipelined, gather-write: segment s goes to segments[s % window]
  std::uint32_t region_count = 0;  ///< multi-write
  std::array<UserRegion, most_user_regions> regions{};
  std::uint64_t memory = 0;  ///< multi-write: the virtual address where the layout's offsets begin
};

/// What the 32 bits beside a write say: the message, the segment, and a number. The number is the count of immediates
/// of that segment (pipelined, gather-write, multi-write), or the staging segment that holds its bytes (scatter-read).
/// So a receiver counts immediates, and needs no order among writes.
struct Immediate {
  std::uint32_t transfer;  ///< 12 bits, the addressee's
  std::uint32_t segment;   ///< modulo segment_modulus
  std::uint32_t number;

  static constexpr std::uint32_t segment_modulus = 64, most_number = (1u << 14) - 1, most_counted = most_number - 1;

  /// To a receiver by multi-write: bytes have arrived, and more follow. Without such signs a message that is long on
  /// its way looks like one whose sender is gone.
  static constexpr Immediate more_bytes(std::uint32_t transfer) noexcept { return {transfer, 0, 0}; }
  /// The message has failed at the other side. No segment is counted so far, and no window or pool has such a place.
  static constexpr Immediate lost(std::uint32_t transfer) noexcept {
    return {transfer, segment_modulus - 1, most_number};
  }

  friend bool operator==(const Immediate&, const Immediate&) = default;

  std::uint32_t encoded() const noexcept { return transfer << 20 | segment % segment_modulus << 14 | number; }
  static Immediate decoded(std::uint32_t bits) noexcept {
    return {bits >> 20, bits >> 14 & (segment_modulus - 1), bits & most_number};
  }
};
static_assert(most_window * 2 <= Immediate::segment_modulus, "no two segments under way look alike");

}  // namespace gapless::transfer::rdma
