// A message that the receiver's GPU reads in the memory of the sender's program, noncontiguous or not, in one pass and
// by one kernel. The sender packs nothing.
//
// The program's memory is needed until the receiver has read the message; one word in shared memory says when. A
// receiver that has posted its receive may still be late, because it waits for something else. So a sender that has
// waited for a while claims the message back by that word, and packs the message into exported memory
// (transfer/schemes/direct.hpp), where the receiver finds the copy. No sender waits for a receiver that waits for
// something else. A thread is needed only for a copy that exported memory cannot hold as a whole. A receiver that has
// let its sender wait for a few messages gets later ones packed: its program may wait for all of its sends before it
// looks at a receive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/runtime.hpp"
#include "model/measured.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"
#include "transfer/operation.hpp"
#include "transfer/pulls/allocations.hpp"
#include "transfer/pulls/offering.hpp"
#include "transfer/pulls/strided.hpp"
#include "transfer/schemes/direct.hpp"

namespace gapless::transfer::pulls {

/// In a header: how the message lies in the memory of the sender's program.
struct PulledWay : StridedMessage {
  static constexpr headers::WayKind kind = headers::WayKind::pulled;
  device::MemoryHandle memory;
  std::int32_t rank = -1;   ///< of the process whose inbox has the words
  std::uint32_t words = 0;  ///< their number there
};

/// One message on its sender's side. The destructor of a message that is handed over waits until the program's memory
/// is not needed any more.
class PullOffer {
 public:
  PullOffer() noexcept = default;
  ~PullOffer();
  PullOffer(const PullOffer&) = delete;
  PullOffer& operator=(const PullOffer&) = delete;

  /// Adds the message to the header. False, and nothing is offered, where the peer has not mapped the memory, or
  /// another way is sooner.
  ///
  /// The peer may read the memory once the program's default stream has done its work. secure() waits for the stream,
  /// but for two cases: await_in() or await() waits for a message of at most `awaited_later` bytes, and hand_over()
  /// waits where the stream had nothing to do when asked last.
  bool secure(const Buffer& buffer, headers::Inbox& inbox, std::size_t awaited_later, headers::Header& header) noexcept;
  /// As secure(), for a message that secure() has just put off, and that there is no room to pack.
  bool secure_put_off(const Buffer& buffer, headers::Inbox& inbox, std::size_t awaited_later,
                      headers::Header& header) noexcept {
    return is_put_off_ && secure_now(buffer, inbox, awaited_later, header);
  }
  /// Must the default stream still be awaited, by await_in() or await()?
  bool is_to_be_awaited() const noexcept { return is_to_be_awaited_; }
  void await_in(Batch& batch) noexcept;
  Result await() noexcept;
  /// Does what hand_over() would do for the default stream. To be called before the header is sent by a call that waits
  /// for the receiver.
  void offer_now() noexcept;
  /// The header has been sent.
  void hand_over() noexcept {
    offer_now();
    is_handed_over_ = true;
  }
  void withdraw() noexcept;

  bool is_there() const noexcept { return words_ != nullptr; }
  double predicted_ns() const noexcept;

  // The functions below take a message that is handed over, and return ok or a failure once the program's memory is not
  // needed any more.

  /// Goes on without waiting for the receiver; under_way while the memory is needed.
  Result poll() noexcept;
  Result wait() noexcept;
  /// Copies the message out at once, unless the receiver has begun to fetch the message.
  Result complete_alone() noexcept;

 private:
  using Clock = ReceiverWatch::Clock;

  bool secure_now(const Buffer& buffer, headers::Inbox& inbox, std::size_t awaited_later,
                  headers::Header& header) noexcept;
  Result go_on(Clock::duration longest_wait) noexcept;
  schemes::DirectOffer* pack_copy(headers::Header& told) noexcept;
  void copy_out() noexcept;
  Clock::duration waited(Clock::time_point now) const noexcept;
  void let_go() noexcept;
  void fail(Result how) noexcept;
  Result end(Result result) noexcept;

  headers::PullWords* words_ = nullptr;
  headers::Inbox* inbox_ = nullptr;
  OfferedAllocation offered_;  ///< where the message lies
  Buffer buffer_{};
  model::Pair pair_ = model::Pair::peer_gpu;
  schemes::DirectOffer room_;               ///< kept for a copy, should nobody fetch the message
  schemes::DirectOffer copy_;               ///< a copy in more room, where there is some
  schemes::DirectOffer* copied_ = nullptr;  ///< what has been copied out: room_ or copy_
  bool is_put_off_ = false, is_to_be_awaited_ = false, is_to_be_offered_ = false, is_handed_over_ = false;
  bool is_over_ = false;
  Result result_ = Result::ok;
  Clock::time_point begun_{};
  Clock::time_point asked_{};  ///< for the message, by a call, for the first time
  ReceiverWatch watch_;
};

}  // namespace gapless::transfer::pulls

/// For tests: how many messages with such an offer this process has received, how many of these it has read in their
/// senders' memory, and how many of its own messages it has copied out.
extern "C" std::uint64_t gapless_pulls_received();
extern "C" std::uint64_t gapless_pulls_fetched();
extern "C" std::uint64_t gapless_pulls_copied_out();
