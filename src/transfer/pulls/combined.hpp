// A combined message of an exchange: one description of all parts that a process has for another one. The receiver's
// GPU reads the parts in the sender's memory, and one word says that the receiver needs no part any more.
//
// Both processes are in the exchanging call, where each may wait for the other. So the sender copies nothing out for a
// late receiver, unlike the sender of a single message (transfer/pulls/offer.hpp).
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

/// The most bytes that a description of `parts` parts takes.
std::size_t longest_description(std::size_t parts) noexcept;

/// The sender's side. Without offer(), the destructor ends as fail() does.
class CombinedOffer {
 public:
  CombinedOffer() noexcept = default;
  ~CombinedOffer() { fail(); }
  CombinedOffer(const CombinedOffer&) = delete;
  CombinedOffer& operator=(const CombinedOffer&) = delete;

  /// Writes the description of the parts, in their order, for the process of the inbox. The parts lie in GPU memory,
  /// and none is empty. False, and nothing is offered, where the receiver's GPU cannot read every part in one pass, or
  /// has not mapped its memory yet. Throws std::bad_alloc.
  bool secure(std::span<const Buffer> parts, headers::Inbox& inbox, std::vector<std::byte>& description);
  /// The GPU whose memory the parts lie in.
  int device() const noexcept { return device_; }
  /// Lets the receiver read the parts. Precondition: the default stream of device() has done its work.
  void offer() noexcept;
  /// The default stream has failed: the receiver gets nothing.
  void fail() noexcept;
  /// The description is not sent.
  void withdraw() noexcept;
  /// under_way until the receiver needs no part any more, then ok or a failure. Precondition: offer() or fail() has
  /// been called.
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

  /// Reads a description. peer_failed where the bytes do not describe `parts` parts: end() releases their sender all
  /// the same. Throws std::bad_alloc.
  Result read(std::span<const std::byte> description, std::size_t parts);
  /// ok once the parts may be read, under_way until then, peer_failed where they never may.
  Result poll() noexcept;

  // Precondition of size_of() and copy(): poll() has returned ok.

  /// Maps part `i` for that GPU, and for no other, and returns the part's packed bytes; negative after a failure.
  layout::Offset size_of(std::size_t i, int device) noexcept;
  /// Adds the copy of part `i` to the jobs. A part that is shorter than the buffer is copied at once. The buffer lies
  /// in memory of the GPU that size_of() has mapped the part for. Throws std::bad_alloc.
  Result copy(std::size_t i, const Buffer& into, std::vector<pack::PairJob>& jobs);
  /// Copies the packed bytes of part `i` into host memory. Done on return.
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
    int device = -1;  ///< that the memory is mapped for
  };

  headers::PullWords* words_ = nullptr;
  std::int64_t process_ = 0;
  std::vector<Part> parts_;
  std::vector<Memory> memories_;
  unsigned looks_ = 0;
};

}  // namespace gapless::transfer::pulls

/// For tests: how many descriptions this process has received, and how many of their parts it has copied.
extern "C" std::uint64_t gapless_combined_received();
extern "C" std::uint64_t gapless_combined_parts();
