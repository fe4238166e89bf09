// Which of the program's GPU allocations a peer has mapped, so that the peer's GPU can read messages there.
//
// Mapping takes the driver milliseconds, and memory that a peer has mapped stays allocated after the program has freed
// it. So a peer is told of an allocation once several messages to that peer have come out of the allocation, and of no
// allocation that the peer would not keep mapped (device::OpenedMemory). The peer maps allocations beside the messages,
// like exported memory (transfer/headers/exported/introductions.hpp), and is told what the program has freed
// (transfer/headers/exported/freed.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "model/measured.hpp"
#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::pulls {

/// An offer of memory in an allocation. As long as one lives, the program does not free the allocation, and its entry
/// stays.
struct EndOffered {
  void operator()(headers::ToldAllocation* told) const noexcept {
    told->offers.fetch_sub(1, std::memory_order_relaxed);
  }
};
using OfferedAllocation = std::unique_ptr<headers::ToldAllocation, EndOffered>;

struct MappedAllocation {
  device::MemoryHandle handle;
  model::Pair pair;  ///< how close both processes' GPUs are
  OfferedAllocation offered;
};

/// The allocation that the address lies in, if the process of the inbox `peer` has mapped the allocation; else nothing.
/// Counts the message, and may tell the peer of the allocation. Thread-safe. Precondition: is_listening().
std::optional<MappedAllocation> mapped_by(headers::Inbox& peer, const void* address) noexcept;

}  // namespace gapless::transfer::pulls

/// For tests: how many allocations of other processes are mapped here now. Zero before anything has been received.
extern "C" std::uint64_t gapless_pulls_mapped();
