// A process's inbox: the shared segment that senders write into, and this process reads.
//
// The inbox is the receiver's. A sender that has opened the inbox knows that its offers can be fetched, because the
// receiver has nothing to open. A process gives messages the memory of one inbox, however many peers the process has.
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
  std::atomic<std::uint32_t> packed;        ///< slots of the message that the sender has filled, or has_failed
  std::atomic<std::uint32_t> communicator;  ///< this and the next: transfer/headers/lost_slots.hpp
  std::atomic<std::int32_t> tag;
  std::atomic<std::uint64_t> slots;    ///< all slots of the message, a bit each
  std::atomic<std::uint64_t> message;  ///< the message's number; 0: no slots, or none to look for when lost
};

/// A sender's question whether this process can map the sender's exported memory, and this process's answer.
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
  std::uint32_t is_of_the_same_gpu;  ///< told with `accepted`: are both processes' GPUs one?
  device::MemoryHandle handle;
};
inline constexpr unsigned introduction_count = 128;

/// Which segments of an exported pool of this process hold a message. Receivers let go of the segments.
inline constexpr unsigned exported_segments = 1024;
using SegmentWords = std::atomic<std::uint8_t>[exported_segments];

/// How far a message is that goes through a ring of such segments, section by section.
struct alignas(64) RingWords {
  static constexpr std::uint32_t has_failed = ~std::uint32_t{0}, all = ~std::uint32_t{0};
  std::atomic<std::uint32_t> packed;   ///< sections that the sender has packed, or has_failed
  std::atomic<std::uint32_t> fetched;  ///< sections that the receiver is done with; all: it wants no more
};

/// Whose turn a message is that the receiver reads in this process's memory (transfer/pulls).
struct alignas(64) PullWords {
  enum class State : std::uint32_t {
    free,
    awaiting,  ///< the sender's GPU: the memory is not written yet, and will be offered
    offered,
    fetching,  ///< by the receiver
    copying,   ///< by the sender, which has waited for long
    copied,    ///< the bytes go another way, which `copy` names
    done,      ///< the receiver needs nothing any more
  };
  std::atomic<State> state;
  std::array<std::byte, 176> copy;  ///< of a copied message: a schemes::ExportedWay
};
inline constexpr unsigned pull_count = 64;
/// A ring for each message that may have to be copied out, and some for messages that go through a ring from the start.
inline constexpr unsigned ring_count = pull_count + 16;

/// The newest freed allocations among those that this process has told peers of.
struct FreedAllocations {
  static constexpr std::uint32_t kept = 16;
  std::atomic<std::uint32_t> count;  ///< of all freed so far
  std::atomic<std::uint64_t> numbers[kept];
};

/// Who a process is, and by which fabric messages reach the process.
struct Speaker {
  Nonce nonce{};
  std::uint64_t fabric = 0;   ///< rdma::fabric_kind()
  std::int32_t rank = -1;     ///< of the process, in its job
  std::int32_t process = -1;  ///< the process's number within its node
};

struct InboxHead {
  static constexpr std::uint64_t magic_of_version_12 = 0x6761706c6573730cu;

  std::uint64_t magic;
  Speaker speaker;
  std::atomic<bool> has_ended;                        ///< the process receives nothing more
  std::atomic<bool> is_called;                        ///< a peer would send headers: transfer/headers/attention.hpp
  std::atomic<bool> is_attentive;                     ///< the process looks at all that it receives
  std::atomic<bool> takes_long_on_gpu;                ///< the last message too long for slots has gone into GPU memory
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
  // Of transfer/headers/exported/freed.hpp.
  std::atomic<bool> answers_calls;            ///< set before this process maps memory of another one
  std::atomic<std::uint32_t> freed_calls;     ///< how often peers have called for freed memory to be unmapped
  std::atomic<std::uint32_t> freed_answered;  ///< how many of the calls are answered
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t inbox_head_bytes = 40960;
inline constexpr std::size_t inbox_bytes = inbox_head_bytes + slot_count * slot_bytes;
static_assert(sizeof(InboxHead) <= inbox_head_bytes);

/// An allocation of the program's, as far as a peer has been told of it (transfer/pulls/allocations.hpp).
struct ToldAllocation {
  std::uint64_t number = 0;  ///< 0: none
  unsigned sends = 0;        ///< from the allocation to the peer
  std::uint64_t last_send = 0;
  bool is_told = false, is_refused = false;
  /// Messages under way that the peer may read in the allocation. The program does not free the allocation before they
  /// are complete.
  std::atomic<unsigned> offers{0};
  device::MemoryHandle handle;
  std::atomic<unsigned> introduction{introduction_count};  ///< introduction_count or more without one
};
struct ToldAllocations {
  std::mutex mutex;  ///< guards all below
  std::array<ToldAllocation, 4> all;
  std::uint64_t sends = 0;
};

/// Backs off from a peer that has let an offered message wait for long: the next 16 messages are not offered, and twice
/// as many after each further wait, up to 1024. Thread-safe.
class PutOff {
 public:
  /// Counts the next message. True if the message is not to be offered.
  bool is_next() noexcept {
    std::uint32_t left = left_.load(std::memory_order_relaxed);
    while (left != 0 && !left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    return left != 0;
  }
  /// To be called when an offered message has waited for too long. Messages of one window wait together, and the wait
  /// counts once: nothing changes while messages are put off.
  void begin() noexcept {
    constexpr std::uint32_t least = 16, most = 1024;
    if (left_.load(std::memory_order_relaxed) != 0) return;
    const std::uint32_t messages = std::clamp(next_.load(std::memory_order_relaxed), least, most);
    left_.store(messages, std::memory_order_relaxed);
    next_.store(2 * messages, std::memory_order_relaxed);
  }
  /// To be called when an offered message has been fetched in time.
  void end() noexcept { next_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> left_{0}, next_{0};
};

/// This process's own inbox, or a peer's that is mapped here. Of a peer on another node there is the speaker alone.
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

  model::Filling filling;  ///< how this process fills the peer's slots
  /// The introductions of this process's exported pools in GPU memory and on the host; introduction_count or more
  /// without one.
  std::atomic<unsigned> introduction{introduction_count}, introduction_on_host{introduction_count};
  ToldAllocations told;
  PutOff pulls_put_off;  ///< messages that are packed before this process offers its memory again
  PutOff rings_put_off;  ///< messages out of host memory that do not go through a ring
  /// When this process began to wait for the peer to read messages that were offered by then.
  std::atomic<std::chrono::steady_clock::rep> pulls_awaited_since{0};
  std::atomic<std::uint32_t> freed_seen{0};  ///< how many of the peer's freed allocations are unmapped here

 private:
  SharedSegment segment_;
  Speaker remote_;
};

}  // namespace gapless::transfer::headers
