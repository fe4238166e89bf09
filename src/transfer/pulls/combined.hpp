// All that one process has for another one in an exchange, under one description: the receiver's GPU reads each part
// where it lies, and one word says that it needs none of them any more.
//
// Both processes are in the call that exchanges, where each may wait for the other. So nothing is copied out for a
// receiver that does not come, unlike a message of its own (pulls/offer.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/opened_memory.hpp"
#include "pack/pair_job.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"
#include "transfer/pulls/offering.hpp"
#include "transfer/pulls/source.hpp"

namespace gapless::transfer::pulls {

/// Bytes of the longest description of so many parts.
std::size_t longest_description(std::size_t parts) noexcept;

/// The sender's side. An offer that is not offered ends as one that has failed.
class CombinedOffer {
 public:
  CombinedOffer() noexcept = default;
  ~CombinedOffer() { fail(); }
  CombinedOffer(const CombinedOffer&) = delete;
  CombinedOffer& operator=(const CombinedOffer&) = delete;

  /// Describes the parts, which are GPU memory and not empty, in their order, for the process of that inbox. False, and
  /// nothing is offered, where it cannot read one of them in one pass, or not yet. Throws std::bad_alloc.
  bool secure(std::span<const Buffer> parts, headers::Inbox& inbox, std::vector<std::byte>& description);
  /// The GPU whose memory they are.
  int device() const noexcept { return device_; }
  /// The default stream of that GPU has done its work: the parts may be read.
  void offer() noexcept;
  /// It has not: the receiver gets nothing.
  void fail() noexcept;
  /// No receiver gets the description.
  void withdraw() noexcept;
  /// ok or a failure, once no part is needed any more. Precondition: offer() or fail() has been called.
  Result poll() noexcept;

 private:
  headers::PullWords* words_ = nullptr;
  headers::Inbox* inbox_ = nullptr;
  int device_ = -1;
  bool is_offered_ = false;
  ReceiverWatch watch_;
};

/// The receiver's side. What the sender says is believed only within bounds.
class CombinedFetch {
 public:
  CombinedFetch() noexcept = default;
  ~CombinedFetch() { end(); }
  CombinedFetch(const CombinedFetch&) = delete;
  CombinedFetch& operator=(const CombinedFetch&) = delete;

  /// ok; peer_failed where that is no description of so many parts, whose sender end() releases. Throws
  /// std::bad_alloc.
  Result read(std::span<const std::byte> description, std::size_t parts);
  /// May the parts be read? under_way while not; peer_failed where they never can.
  Result poll() noexcept;

  // Preconditions of those: poll() has said ok.

  /// Packed bytes of part `i`, which is mapped for that GPU from now on, and for no other; negative after a failure.
  layout::Offset size_of(std::size_t i, int device) noexcept;
  /// Adds the copy of part `i` to the jobs, or makes it at once where it is shorter than the buffer, in GPU memory of
  /// that device. Throws std::bad_alloc.
  Result copy(std::size_t i, const Buffer& into, std::vector<pack::PairJob>& jobs);
  /// Copies it packed into host memory. Done on return.
  Result copy(std::size_t i, std::byte* into) noexcept;
  /// All copies have been made: the sender's memory is not needed any more.
  void end() noexcept;

 private:
  struct Part {
    StridedMessage message;
    std::uint32_t memory = 0;
    Source source;
  };
  struct Memory {
    device::MemoryHandle handle;
    device::OpenedMemory::Use use;
    int device = -1;  ///< for which it is mapped
  };

  headers::PullWords* words_ = nullptr;
  std::int64_t process_ = 0;
  std::vector<Part> parts_;
  std::vector<Memory> memories_;
  unsigned looks_ = 0;
};

}  // namespace gapless::transfer::pulls

/// For tests: how many exchanges' parts for this process have come combined, and how many parts these were.
extern "C" std::uint64_t gapless_combined_received();
extern "C" std::uint64_t gapless_combined_parts();
