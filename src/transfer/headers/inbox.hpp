// A process's inbox: the shared segment that senders write into, and this process reads.
//
// The inbox is the receiver's, so that the sender proves by opening it that what it offers can be fetched: the receiver
// has nothing to open. What one process gives to messages is the size of one inbox, however many its peers are.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/shared_segment.hpp"
#include "device/runtime.hpp"
#include "model/corrections/filling.hpp"
#include "transfer/headers/header.hpp"

namespace gapless::transfer::headers {

inline constexpr std::size_t slot_bytes = 32 * 1024;
inline constexpr unsigned slot_count = 64;
inline constexpr std::uint64_t all_slots = ~std::uint64_t{0};  ///< a bit each

/// The words of the message whose first slot this is.
struct alignas(64) SlotWords {
  static constexpr std::uint32_t has_failed = ~std::uint32_t{0};
  std::atomic<std::uint32_t> packed;        ///< how many of its slots the sender has filled, or has_failed
  std::atomic<std::uint32_t> communicator;  ///< this and the next: headers/lost_slots.hpp
  std::atomic<std::int32_t> tag;
  std::atomic<std::uint64_t> slots;    ///< all that it has, a bit each
  std::atomic<std::uint64_t> message;  ///< its number; 0 when it holds no slots, or is not to be looked for
};

/// A sender asks whether this process can map its exported memory, and this process answers.
struct Introduction {
  enum class State : std::uint32_t {
    none,
    being_written,
    asked,
    being_answered,
    accepted,
    refused,
    no_gpu_yet,  ///< refused, until this process uses a GPU
  };

  std::atomic<State> state;
  std::int32_t rank;                 ///< the sender's
  std::uint32_t is_of_the_same_gpu;  ///< said with the acceptance: are both processes' GPUs one?
  device::MemoryHandle handle;
};
inline constexpr unsigned introduction_count = 128;

/// Of one exported pool of this process: which segments hold a message. Receivers let go of them.
inline constexpr unsigned exported_segments = 1024;
using SegmentWords = std::atomic<std::uint8_t>[exported_segments];

/// Of a message that goes through a ring of such segments, section by section: how far it is.
struct alignas(64) RingWords {
  static constexpr std::uint32_t has_failed = ~std::uint32_t{0}, all = ~std::uint32_t{0};
  std::atomic<std::uint32_t> packed;   ///< sections that the sender has packed, or has_failed
  std::atomic<std::uint32_t> fetched;  ///< sections that the receiver needs no more; all, once it wants no other
};

/// Of a message that its receiver reads in this process's memory (transfer/pulls): who may go on with it.
struct alignas(64) PullWords {
  enum class State : std::uint32_t {
    free,
    awaiting,  ///< the sender's GPU: the memory is not written yet, and will be offered
    offered,
    fetching,  ///< by the receiver
    copying,   ///< by the sender, which has waited for long
    copied,    ///< its bytes go another way
    done,      ///< the receiver needs nothing any more
  };
  std::atomic<State> state;
  std::array<std::byte, 176> copy;  ///< of what is copied: a schemes::ExportedWay
};
inline constexpr unsigned pull_count = 64;
/// One for each message that may have to be copied out, and some for those that go through a ring from the start.
inline constexpr unsigned ring_count = pull_count + 16;

/// Allocations that this process has told peers of and that are freed: the newest.
struct FreedAllocations {
  static constexpr std::uint32_t kept = 16;
  std::atomic<std::uint32_t> count;  ///< of all so far
  std::atomic<std::uint64_t> numbers[kept];
};

/// Who a process is, and whether it can be sent messages by a fabric.
struct Speaker {
  Nonce nonce{};
  std::uint64_t fabric = 0;   ///< rdma::fabric_kind()
  std::int32_t rank = -1;     ///< of the process, in its job
  std::int32_t process = -1;  ///< its number, within its node
};

struct InboxHead {
  static constexpr std::uint64_t magic_of_version_12 = 0x6761706c6573730cu;

  std::uint64_t magic;
  Speaker speaker;
  std::atomic<bool> has_ended;                        ///< it receives nothing more
  std::atomic<bool> is_called;                        ///< a peer would send headers: headers/attention.hpp
  std::atomic<bool> is_attentive;                     ///< it looks at all that it receives
  std::atomic<bool> lands_on_gpu;                     ///< its last message too long for slots went into GPU memory
  alignas(64) std::atomic<std::uint64_t> free_slots;  ///< a bit each
  alignas(64) std::atomic<std::uint32_t> next;        ///< the slot that the next message begins to look at
  alignas(64) std::atomic<bool> are_slots_short;      ///< a sender has found few or none
  SlotWords words[slot_count];
  alignas(64) std::atomic<std::uint32_t> asked;  ///< how often a sender has asked
  Introduction introductions[introduction_count];
  alignas(64) SegmentWords holds_message;          ///< of the pool in GPU memory
  alignas(64) SegmentWords holds_message_on_host;  ///< of the pool on the host
  RingWords rings[ring_count];
  PullWords pulls[pull_count];
  FreedAllocations freed;
  // Of headers/exported/freed.hpp.
  std::atomic<bool> answers_calls;            ///< from before this process maps anything of another's
  std::atomic<std::uint32_t> freed_calls;     ///< how often peers have called to have unmapped what they have freed
  std::atomic<std::uint32_t> freed_answered;  ///< how many of the calls are answered
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t inbox_head_bytes = 40960;
inline constexpr std::size_t inbox_bytes = inbox_head_bytes + slot_count * slot_bytes;
static_assert(sizeof(InboxHead) <= inbox_head_bytes);

/// An allocation of the program's, as far as a peer has been told of it (transfer/pulls/allocations.hpp).
struct ToldAllocation {
  std::uint64_t number = 0;  ///< 0: none
  unsigned sends = 0;        ///< from it, to that peer
  std::uint64_t last_send = 0;
  bool is_told = false, is_refused = false;
  /// Messages that may be read there until they are complete: it is not freed before.
  std::atomic<unsigned> offers{0};
  device::MemoryHandle handle;
  std::atomic<unsigned> introduction{introduction_count};
};
struct ToldAllocations {
  std::mutex mutex;  ///< guards all below
  std::array<ToldAllocation, 4> all;
  std::uint64_t sends = 0;
};

/// Backs off from a peer that has let an offered message wait for long: the next 16 are not offered, and twice as many
/// each time that this happens again, up to 1024. Thread-safe.
class PutOff {
 public:
  /// Is the next message not offered? Counts it.
  bool is_next() noexcept {
    std::uint32_t left = left_.load(std::memory_order_relaxed);
    while (left != 0 && !left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    return left != 0;
  }
  /// A message that was offered has waited for too long.
  void begin() noexcept {
    constexpr std::uint32_t least = 16, most = 1024;
    const std::uint32_t messages = std::clamp(next_.load(std::memory_order_relaxed), least, most);
    left_.store(messages, std::memory_order_relaxed);
    next_.store(2 * messages, std::memory_order_relaxed);
  }
  /// A message was fetched in time.
  void end() noexcept { next_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> left_{0}, next_{0};
};

/// One's own, or a peer's that is mapped here; of a peer on another node, only who it is.
class Inbox {
 public:
  Inbox() noexcept = default;
  explicit Inbox(SharedSegment segment) noexcept : segment_(std::move(segment)) {}
  explicit Inbox(const Speaker& remote) noexcept : remote_(remote) {}

  explicit operator bool() const noexcept { return static_cast<bool>(segment_); }
  bool is_remote() const noexcept { return remote_.rank >= 0; }
  const Speaker& speaker() const noexcept { return is_remote() ? remote_ : head().speaker; }

  // Preconditions of the following: not remote.
  InboxHead& head() const noexcept { return *reinterpret_cast<InboxHead*>(segment_.data()); }
  std::byte* slot(unsigned index) const noexcept { return segment_.data() + inbox_head_bytes + index * slot_bytes; }

  // Used in the inbox of a peer.

  model::Filling filling;  ///< how this process fills its slots
  /// Where this process has introduced its exported pool in GPU memory, and the one on the host; introduction_count
  /// where it has not.
  std::atomic<unsigned> introduction{introduction_count}, introduction_on_host{introduction_count};
  ToldAllocations told;
  PutOff pulls_put_off;  ///< that this process packs before it offers that peer its memory again
  PutOff rings_put_off;  ///< out of host memory, that do not go through a ring
  /// When this process began to wait for that peer to read messages, of those that it has offered before.
  std::atomic<std::chrono::steady_clock::rep> pulls_awaited_since{0};
  std::atomic<std::uint32_t> freed_seen{0};  ///< how many of the peer's freed allocations are unmapped here

 private:
  SharedSegment segment_;
  Speaker remote_;
};

}  // namespace gapless::transfer::headers
