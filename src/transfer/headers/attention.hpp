// Whether this process looks at the messages that it receives. Looking costs time where the library's own receive is
// best. So a process leaves such receives to the library, unattended, until a peer that would send a header calls for
// its attention. From then on the process looks at every receive that it posts, and once no unattended receive is under
// way, its inbox says that it is attentive. Headers go to attentive processes alone. Until then, messages go as to a
// process without gapless.
//
// No header can land in an unattended receive. A receive counts itself before it looks for calls. Attention is given
// after a call has been seen, if no receive is counted. Both are sequentially consistent, so one of the two sees the
// other. Attention is taken back by the same rule: a sender takes slots of the inbox, or sees that the process has
// accepted memory of its own, before it looks whether the process is still attentive. The process looks for taken slots
// and accepted memory after its inbox has said that it is not.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::headers {

namespace internal {
extern std::atomic<InboxHead*> own_head;       ///< null until this process listens
extern std::atomic<std::uint32_t> unattended;  ///< receives under way at which this process does not look
extern std::atomic<std::int32_t> looks_left;   ///< until attention is taken back
void give_attention(InboxHead& own) noexcept;
void take_attention_back(InboxHead& own) noexcept;
}  // namespace internal

/// A header saves a message at least what so many looks cost.
inline constexpr std::int32_t looks_per_header = 64;
/// So many looks find no header before attention is taken back.
inline constexpr std::int32_t most_looks = 1024;

/// Has a peer called for this process's attention, or is attention given from the start? Precondition: is_listening().
inline bool is_called() noexcept {
  return internal::own_head.load(std::memory_order_relaxed)->is_called.load(std::memory_order_seq_cst);
}

/// To be called before this process receives a message at which it looks: gives attention to peers that have called, if
/// no unattended receive is under way, or takes attention back. Some loads where there is nothing to do. Where several
/// threads look, not every look counts. Precondition: is_listening(), and the caller has no unattended receive that is
/// posted but not counted.
inline void begin_look() noexcept {
  InboxHead& own = *internal::own_head.load(std::memory_order_relaxed);
  const bool is_called = own.is_called.load(std::memory_order_seq_cst);
  if (is_called && !own.is_attentive.load(std::memory_order_relaxed)) [[unlikely]]
    internal::give_attention(own);
  const std::int32_t left = internal::looks_left.load(std::memory_order_relaxed) - 1;
  internal::looks_left.store(left, std::memory_order_relaxed);
  if (left <= 0) [[unlikely]]
    internal::take_attention_back(own);
}
/// To be called when a look has found a header.
inline void note_header() noexcept {
  const std::int32_t left = internal::looks_left.load(std::memory_order_relaxed) + looks_per_header;
  internal::looks_left.store(std::min(left, most_looks), std::memory_order_relaxed);
}
/// Gives attention for good. Precondition: no peer knows yet of the inbox, which is this process's.
void give_attention_for_good(InboxHead& own) noexcept;

/// Does the process of the inbox look at all that it receives?
inline bool is_attentive(const InboxHead& head) noexcept { return head.is_attentive.load(std::memory_order_acquire); }
/// The same, asked by a sender that has taken slots of the inbox, or has seen that the process has accepted its memory:
/// if so, the process stays attentive until the slots are free, or for good.
inline bool is_still_attentive(const InboxHead& head) noexcept {
  return head.is_attentive.load(std::memory_order_seq_cst);
}

/// is_attentive() of a peer; calls for the peer's attention if it is not attentive.
inline bool is_attentive_when_called(InboxHead& head) noexcept {
  if (is_attentive(head)) [[likely]]
    return true;
  if (!head.is_called.load(std::memory_order_relaxed)) head.is_called.store(true, std::memory_order_seq_cst);
  return false;
}

/// Counts a receive at which nobody looks, from before it is posted until it is complete.
class Unattended {
 public:
  constexpr Unattended() noexcept = default;
  ~Unattended() { end(); }
  Unattended(const Unattended&) = delete;
  Unattended& operator=(const Unattended&) = delete;

  /// Counts the receive. False, and the receive is not counted, if a peer has called: this process must look at the
  /// receive. Precondition: is_listening().
  bool begin() noexcept {
    if (is_counted_) return true;
    internal::unattended.fetch_add(1, std::memory_order_seq_cst);
    is_counted_ = true;
    if (!is_called()) return true;
    end();
    return false;
  }
  /// Counts the receive while another one is counted, which keeps attention from being given.
  void begin_beside_another() noexcept {
    internal::unattended.fetch_add(1, std::memory_order_seq_cst);
    is_counted_ = true;
  }
  void end() noexcept {
    if (is_counted_) internal::unattended.fetch_sub(1, std::memory_order_seq_cst);
    is_counted_ = false;
  }
  explicit operator bool() const noexcept { return is_counted_; }

 private:
  bool is_counted_ = false;
};

}  // namespace gapless::transfer::headers
