// A message that its receiver's GPU reads where it lies: in the program's memory at the sender, noncontiguous or not,
// in one pass and by one kernel. The sender packs nothing.
//
// The sender's memory is needed until the receiver has read it, which one word in shared memory says. A receiver may be
// long in coming though it has posted its receive, for it may wait for something else meanwhile; so a sender that has
// waited for a while claims the message back by that word, and packs it into exported memory (schemes/direct.hpp),
// where the receiver finds it. So no sender waits for a receiver that waits for something else; a thread is needed only
// where the copy is too long to lie there as a whole. Receivers that let their senders wait are known after a few
// messages, which then are packed at once: a program may wait for all of its sends before it looks at a receive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/runtime.hpp"
#include "model/measured.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"
#include "transfer/operation.hpp"
#include "transfer/pulls/offering.hpp"
#include "transfer/pulls/strided.hpp"
#include "transfer/schemes/direct.hpp"

namespace gapless::transfer::pulls {

/// In a header: how the message lies in the memory of the sender's program.
struct PulledWay : StridedMessage {
  static constexpr headers::WayKind kind = headers::WayKind::pulled;
  device::MemoryHandle memory;
  std::int32_t rank = -1;   ///< whose inbox has the words
  std::uint32_t words = 0;  ///< which
};

/// One message on its sender's side. Once it is released, its destructor waits until the memory is not needed.
class PullOffer {
 public:
  PullOffer() noexcept = default;
  ~PullOffer();
  PullOffer(const PullOffer&) = delete;
  PullOffer& operator=(const PullOffer&) = delete;

  /// Adds it to the header. False, and nothing is offered, where the peer has not mapped the memory, or another way is
  /// sooner. The memory may be read once the program's default stream has done its work: waits for that, or leaves that
  /// to await_in() or await(), where the message has no more than so many bytes, or to release(), where the stream had
  /// nothing to do when it was asked last.
  bool secure(const Buffer& buffer, headers::Inbox& inbox, std::size_t awaited_later, headers::Header& header) noexcept;
  /// Must the default stream still be awaited, by await_in() or await()?
  bool is_to_be_awaited() const noexcept { return is_to_be_awaited_; }
  void await_in(Batch& batch) noexcept;
  Result await() noexcept;
  /// The header is to be sent by a call that waits for the receiver: nothing may be left to release().
  void offer_now() noexcept;
  /// The header has been sent.
  void release() noexcept {
    offer_now();
    is_released_ = true;
  }
  void withdraw() noexcept;

  bool is_there() const noexcept { return words_ != nullptr; }
  double predicted_ns() const noexcept;

  // Of a released one. ok, or a failure, once the memory is not needed any more.

  /// Goes on, without waiting for the receiver.
  Result poll() noexcept;
  Result wait() noexcept;
  /// Frees the program's memory from the message, with or without a receiver.
  Result complete_alone() noexcept;

 private:
  using Clock = ReceiverWatch::Clock;

  Result go_on(Clock::duration longest_wait) noexcept;
  schemes::DirectOffer* pack_copy(headers::Header& told) noexcept;
  void copy_out() noexcept;
  Clock::duration waited(Clock::time_point now) const noexcept;
  void let_go() noexcept;
  void fail(Result how) noexcept;
  Result end(Result result) noexcept;

  headers::PullWords* words_ = nullptr;
  headers::Inbox* inbox_ = nullptr;
  headers::ToldAllocation* told_ = nullptr;  ///< where the message lies
  Buffer buffer_{};
  model::Pair pair_ = model::Pair::peer_gpu;
  schemes::DirectOffer room_;               ///< kept for what nobody fetches
  schemes::DirectOffer copy_;               ///< in more room, where there is some
  schemes::DirectOffer* copied_ = nullptr;  ///< where it has been copied out to
  bool is_to_be_awaited_ = false, is_to_be_offered_ = false, is_released_ = false, is_over_ = false;
  Result result_ = Result::ok;
  Clock::time_point begun_{};
  ReceiverWatch watch_;
};

}  // namespace gapless::transfer::pulls

/// For tests: how many messages that were offered so have been received, how many of them were read in their senders'
/// memory, and how many this process has copied out.
extern "C" std::uint64_t gapless_pulls_received();
extern "C" std::uint64_t gapless_pulls_fetched();
extern "C" std::uint64_t gapless_pulls_copied_out();
