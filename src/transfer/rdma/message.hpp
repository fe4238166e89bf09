// One side of one message by RDMA, from its offer to its end.
//
// The state that all schemes share is here; each scheme's steps are in the scheme's own file.
#pragma once

#include <array>
#include <chrono>
#include <optional>

#include "layout/algebra/refine.hpp"
#include "pack/job.hpp"
#include "transfer/rdma/information.hpp"
#include "transfer/rdma/memory/post_list.hpp"
#include "transfer/rdma/memory/staging.hpp"
#include "transfer/rdma/memory/user_memory.hpp"

namespace gapless::transfer::rdma {

class Channel;

enum class Result : std::uint8_t {
  ok,
  under_way,
  refused,      ///< no staging, or a registration is refused; another scheme may do
  peer_failed,  ///< the peer is gone
  timed_out,    ///< no progress for longer than Options::stall_limit
  failed,       ///< the fabric says that an operation went wrong
};

/// A place in the window. Both sides have the same places, with a staging segment each where the scheme needs one.
struct WindowSlot {
  enum class State : std::uint8_t {
    idle,    ///< sender: free for the next segment; receiver: the segment has not arrived
    ready,   ///< receiver: the segment has arrived
    moving,  ///< sender: the peer has not given the place back; receiver: the segment is being read
    over,    ///< receiver: there is no further segment for the place
  };
  State state = State::idle;
  int staging = -1;              ///< this side's staging segment, negative: none; scatter-read's receiver: the sender's
  std::uint32_t segment = 0;     ///< of the message
  std::uint32_t posts_left = 0;  ///< this side's posts that are not completed
  std::uint32_t arrived = 0;     ///< immediates that have arrived
};

class Message {
 public:
  Message(Channel& channel, std::uint32_t number);
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// Sender: the receiver has replied. `peer_layout` is the receiver's, for multi-write; the caller has checked the
  /// layout. A reply with values out of bounds fails the message.
  Result start(const Reply& reply, const layout::LayoutPointer& peer_layout = nullptr,
               layout::Mode peer_outer = {1, 0}) noexcept;
  /// Goes on without waiting. After any result but under_way, Channel::end() has to follow.
  Result advance() noexcept;

  /// Sender: a reply lies in the message's mailbox, and start() or decline() has to follow.
  bool has_mail() const noexcept { return has_mail_ && !is_started_; }
  bool is_started() const noexcept { return is_started_; }
  /// Sender: the receiver does not want the bytes. Ends the message without an error.
  void decline() noexcept {
    is_started_ = true;
    result_ = Result::ok;
  }
  /// Sender: the receiver has replied, and the bytes do not exist any more. The message fails at both sides.
  void lose(const Reply& reply) noexcept;
  /// Sender: the same bytes are in `memory` now. Precondition: neither has_mail() nor is_started().
  void move_to(const Memory& memory) noexcept { memory_ = memory; }

  const Offer& offer() const noexcept { return offer_; }
  const Reply& reply() const noexcept { return reply_; }
  Scheme scheme() const noexcept { return reply_.scheme; }
  Result result() const noexcept { return result_; }

  // For schemes and the channel alone.

  void open(int peer, const Memory& memory, Side side) noexcept;
  /// Where the message has failed here alone, its peer need not wait for the stall limit.
  void tell_of_failure() noexcept;
  /// Gives staging segments and registrations back, but for segments that the peer may still reach, or that posts of
  /// this side still read. Returns the number of those.
  std::size_t close() noexcept;
  bool is_quiet() const noexcept { return outstanding_ == 0; }
  void fail(Result result) noexcept {
    if (result_ == Result::under_way || result_ == Result::ok) result_ = result;
  }
  void posted(std::uint32_t tag, fabric::Status status) noexcept;
  /// The same after close(). Returns how many segments have been given back with the message's last post.
  std::size_t posted_after_end() noexcept;
  /// The completion of Channel::touch(). A touch is no step of the message, and nothing waits for a touch.
  void touched(fabric::Status status) noexcept {
    is_touching_ = false;
    is_peer_lost_ |= status != fabric::Status::ok;
  }
  void arrived(Immediate immediate) noexcept;
  std::uint64_t context(std::uint32_t tag) const noexcept { return std::uint64_t{number_} << 32 | tag; }

  std::uint32_t segment_count() const noexcept;
  /// Packed bytes [begin, end) of a segment.
  layout::Offset begin_of(std::uint32_t segment) const noexcept;
  layout::Offset end_of(std::uint32_t segment) const noexcept;
  WindowSlot& slot_of(std::uint32_t segment) noexcept { return slots_[segment % reply_.window]; }
  /// Moves the bytes of a segment between the program's memory and a staging segment of this side. False: there is no
  /// memory for that, and the message has failed.
  bool pack(std::uint32_t segment, int staging) noexcept;
  bool unpack(std::uint32_t segment, int staging) noexcept;
  std::uint32_t peer_number() const noexcept { return side_ == Side::sender ? reply_.transfer : offer_.transfer; }
  /// Tells the peer of the places in to_notify_. False while the queue is full.
  bool notify() noexcept;
  /// Posts the list. False while the queue is full, or after a failure.
  bool flush() noexcept;
  /// Lists an operation on a block of the program's memory. A block that no region holds ends the message: false.
  /// Throws std::bad_alloc.
  bool list_block(fabric::Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key, std::byte* block,
                  std::size_t bytes);
  /// Gives the list's posts their tag, which is the segment's place, and the immediates that tell the peer of their
  /// arrival.
  void label(std::uint32_t segment) noexcept;

  Channel& channel_;
  std::uint32_t number_;
  int peer_ = -1;
  Side side_ = Side::sender;
  Memory memory_;
  Offer offer_;
  Reply reply_;
  Result result_ = Result::under_way;
  bool is_started_ = false;
  bool has_mail_ = false;
  bool is_lost_ = false;  ///< the bytes are lost, which the receiver has to hear

  UserMemory user_memory_;
  PostList list_;
  std::array<WindowSlot, most_window> slots_;
  std::uint32_t next_ = 0;         ///< segment to begin
  std::uint32_t finished_ = 0;     ///< segments
  std::uint32_t outstanding_ = 0;  ///< posts not completed
  std::uint32_t to_notify_ = 0;    ///< bits by place in the window: places that the peer has to be told of
  bool is_told_ = false;           ///< multi-write: the receiver has been told that all bytes are there
  std::uint64_t since_sign_ = 0;   ///< multi-write: bytes listed since the last sign of progress
  layout::LayoutPointer peer_layout_;
  layout::Mode peer_outer_{1, 0};
  std::optional<layout::PairCursor> pairs_;
  std::optional<layout::PairedRun> held_;  ///< a run that did not go into the last list

  /// Do only posts of this side reach its segments? The peer writes to a receiver's, and reads a sender's in
  /// scatter-read.
  bool has_segments_alone() const noexcept { return side_ == Side::sender && scheme() != Scheme::scatter_read; }
  std::size_t release_staging() noexcept;
  bool copy(std::uint32_t segment, int staging, pack::Direction direction) noexcept;
  void look_at_clock() noexcept;
  Result tell_of_loss() noexcept;

  /// Has any message with the peer got further since the last look? One may wait for others' bytes, which the fabric
  /// has taken first.
  bool has_moved() noexcept;

  std::uint32_t moves_seen_ = 0;  ///< of the peer
  bool is_touching_ = false;
  bool is_peer_lost_ = false;  ///< a touch has failed; earlier writes of the peer may still arrive
  unsigned untaken_ = 0;       ///< touches in a row that the fabric has not taken
  std::chrono::steady_clock::time_point moved_at_, touched_at_, looked_at_;

  /// Tags of posts that belong to no segment.
  static constexpr std::uint32_t notification_tag = 0xffff, touch_tag = 0xfffe;
};

}  // namespace gapless::transfer::rdma
