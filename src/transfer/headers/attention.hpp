// Whether this process looks at what it receives. Looking costs something where the library's own receive is the better
// one, so a process leaves such receives to the library until a peer calls for its attention: a peer that would send a
// header. From then on it looks at every receive that it posts, and once none is under way at which it does not look,
// it says so in its inbox. Headers go to attentive processes alone; until then messages go as to a process without
// gapless.
//
// No header can land in an unattended receive. A receive counts itself before it looks for calls, and attention is
// given after a call has been seen, if none is counted; all of this is sequentially consistent, so one of the two sees
// the other.
#pragma once

#include <atomic>
#include <cstdint>

#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::headers {

namespace internal {
extern std::atomic<InboxHead*> own_head;       ///< null until this process listens
extern std::atomic<std::uint32_t> unattended;  ///< receives under way at which this process does not look
void give_attention(InboxHead& own) noexcept;
}  // namespace internal

/// Has a peer called for this process's attention, or is it given to all from the start? Precondition: is_listening().
inline bool is_called() noexcept {
  return internal::own_head.load(std::memory_order_relaxed)->is_called.load(std::memory_order_seq_cst);
}

/// Gives attention to those that have called for it, if it can be given now. Two loads where there is nothing to do.
/// Precondition: is_listening(), and the caller has no receive in hand that is posted but not counted.
inline void answer_calls() noexcept {
  InboxHead& own = *internal::own_head.load(std::memory_order_relaxed);
  const bool is_called = own.is_called.load(std::memory_order_seq_cst);
  if (is_called && !own.is_attentive.load(std::memory_order_relaxed)) [[unlikely]]
    internal::give_attention(own);
}

/// Does the process of that inbox look at all that it receives?
inline bool is_attentive(const InboxHead& head) noexcept { return head.is_attentive.load(std::memory_order_acquire); }

/// The same of a peer. Calls for its attention if it does not.
inline bool is_attentive_when_called(InboxHead& head) noexcept {
  if (is_attentive(head)) [[likely]]
    return true;
  if (!head.is_called.load(std::memory_order_relaxed)) head.is_called.store(true, std::memory_order_seq_cst);
  return false;
}

/// Counts a receive at which nobody looks, from before it is posted until it is complete.
class Unattended {
 public:
  Unattended() noexcept = default;
  ~Unattended() { end(); }
  Unattended(const Unattended&) = delete;
  Unattended& operator=(const Unattended&) = delete;

  /// Counts it. False, and it is not, where a peer has called: then the receive must be looked at. Precondition:
  /// is_listening().
  bool begin() noexcept {
    if (is_counted_) return true;
    internal::unattended.fetch_add(1, std::memory_order_seq_cst);
    is_counted_ = true;
    if (!is_called()) return true;
    end();
    return false;
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
