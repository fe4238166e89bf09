// One process's end of a fabric: staging segments, registrations, and the messages under way.
//
// A caller with messages under way calls progress(), and advance() of each message, until the messages are over:
// software providers do nothing by themselves. A channel is used by one thread at a time. Nothing throws but the
// constructor.
//
// A message that ends in an error may not be over at the peer, which may still write to a receiver's staging segments,
// or read a sender's by scatter-read. So these segments and the message's number are not given again while the channel
// lives, and its registrations end.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/remote/registration_cache.hpp"
#include "model/fabric.hpp"
#include "transfer/rdma/memory/staging.hpp"
#include "transfer/rdma/message.hpp"

namespace gapless::transfer::rdma {

struct Options {
  std::size_t segment_bytes = 128 << 10;  ///< Wu et al., 2003, 7.2
  std::size_t segments = 32;              ///< for each side
  std::size_t window = 8;                 ///< segments of one message under way, at most most_window
  std::size_t most_sender_regions = 64;
  bool segment_unpack = true;  ///< unpack what has arrived, else only whole windows: Wu et al., 2003, 8.4
  bool list_posting = true;    ///< post whole lists, else one operation at a time: Wu et al., 2003, 8.5
  fabric::RegistrationCache::Bounds registrations{};
  model::FabricProfile profile{};
  /// A message that has got no further for so long ends in an error; 0: never.
  std::chrono::nanoseconds stall_limit{0};
  /// The peer of a message that has got no further for so long is touched, again and again: a fabric reports a dead
  /// peer only when something is posted to that peer. 0: never.
  std::chrono::nanoseconds touch_after{0};
  /// Two looks at a message further apart than this have a pause of this process between them, for instance by a signal
  /// that stops the process. The pause counts towards neither of the two limits above.
  std::chrono::nanoseconds own_pause = std::chrono::seconds(5);
  /// A peer that has taken something is gone once the fabric has refused so many touches of that peer in a row, with
  /// room in the queue: libfabric's tcp tries for ever to connect to a process that has ended. It does the same while a
  /// process that is stopped has not yet answered.
  unsigned most_untaken = 10;
};

/// What a channel has done so far.
struct Counts {
  std::uint64_t posts = 0;  ///< operations that carry message bytes
  std::uint64_t lists = 0;  ///< how often lists of them were handed over
  std::uint64_t posted_bytes = 0;
  std::uint64_t notifications = 0;  ///< operations that carry an immediate alone
  std::uint64_t completions = 0;    ///< of posts and notifications
  std::uint64_t copied_bytes = 0;   ///< packed or unpacked
  std::uint64_t unknown_immediates = 0;
  std::uint64_t abandoned_segments = 0;
  std::array<std::uint64_t, scheme_count> messages{};  ///< begun, by rdma::Scheme
};

/// Bytes of one operation, at most, and of multi-write from one sign of progress to the next: even a slow network moves
/// so many well within the stall limit.
inline constexpr std::size_t most_operation_bytes = std::size_t{4} << 20;

class Channel {
 public:
  /// Throws std::bad_alloc. ok() says whether the fabric took the staging segments.
  explicit Channel(fabric::Endpoint& endpoint, const Options& options = {});
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  bool ok() const noexcept { return staging_.ok(); }

  /// A message to a peer of the endpoint; null if too many are under way, or failed messages have kept all staging
  /// segments. The caller takes the message's offer to the receiver.
  Message* send(int peer, const Memory& memory) noexcept;
  /// The receiver's side of an offered message. The scheme is `first`, else the one with the least predicted time,
  /// among the schemes in `allowed` (bits by Scheme) whose resources are free. The caller takes the message's reply to
  /// the sender. Null: nothing is free now, or other messages will give back what the best scheme needs; try again
  /// after progress. Precondition: `memory` has exactly the size of the offer.
  Message* receive(int peer, const Memory& memory, const Offer& offer, unsigned allowed = ~0u,
                   std::optional<Scheme> first = std::nullopt) noexcept;
  /// The receiver's side of a message that is not wanted. The message is over, and its mail tells the sender. Null if
  /// too many are under way.
  Message* decline(int peer, const Offer& offer) noexcept;
  /// The mailbox of a message: at the sender, what the receiver has written; at the receiver, what mail() is to send.
  std::byte* mailbox(const Message& message) const noexcept {
    return staging_.mailbox(message.number_ & (most_messages - 1));
  }
  /// Receiver: sends the mailbox's first `bytes` bytes to the sender, once. False if the queue is full. Failures end
  /// the message.
  bool mail(Message& message, std::size_t bytes) noexcept;
  /// Gives back a message that is over, with success or not.
  void end(Message* message) noexcept;

  /// Takes what the fabric has completed.
  void progress() noexcept;

  const Options& options() const noexcept { return options_; }
  const Counts& counts() const noexcept { return counts_; }
  fabric::RegistrationCache& registrations() noexcept { return registrations_; }
  fabric::RegistrationCost registration_cost() const noexcept {
    return {options_.profile.registration_ns, options_.profile.registered_page_ns};
  }
  Staging& staging() noexcept { return staging_; }
  /// The endpoint's, with operations of at most `most_operation_bytes`.
  const fabric::Limits& limits() const noexcept { return limits_; }

  // For messages.

  /// How often messages with that peer have got further.
  std::uint32_t moves(int peer) const noexcept { return moves_[static_cast<std::size_t>(peer)]; }
  void note_move(int peer) noexcept { ++moves_[static_cast<std::size_t>(peer)]; }
  /// Posts what is left of a list. ok: all of it; under_way: the queue is full.
  Result post(Message& message, PostList& list) noexcept;
  /// Sends an immediate alone; false if the queue is full. Failures end the message.
  bool notify(Message& message, Immediate immediate) noexcept;
  /// Writes to the peer's bell without an immediate. The peer notices nothing; the completion says whether the peer is
  /// there.
  void touch(Message& message) noexcept;
  PoolInformation information_for(std::uint32_t number) const noexcept {
    return staging_.information(number & (most_messages - 1));
  }
  void count_copy(std::uint64_t bytes) noexcept { counts_.copied_bytes += bytes; }

 private:
  /// Half of the messages are for senders: two processes whose sends had taken all would wait for each other's
  /// receives.
  static constexpr std::uint32_t most_messages = 256, generations = 16;
  struct Entry {
    std::unique_ptr<Message> message;
    std::uint32_t generation = 0;
    bool is_used = false;
    bool is_abandoned = false;
  };

  Message* open(int peer, const Memory& memory, Side side) noexcept;
  bool is_staging_lent(Side side, const Message* without = nullptr) const noexcept;
  Message* find(std::uint32_t number) noexcept;
  Message* find_abandoned(std::uint32_t number) noexcept;
  void take(const fabric::Completion& completion) noexcept;
  bool post_alone(Message& message, const fabric::Piece& piece, fabric::RemoteAddress remote, std::uint64_t key,
                  Immediate immediate) noexcept;

  fabric::Endpoint& endpoint_;
  fabric::Limits limits_;
  Options options_;
  Counts counts_;
  fabric::RegistrationCache registrations_;
  Staging staging_;
  std::array<Entry, most_messages> entries_;
  std::vector<std::uint32_t> moves_;  ///< by peer
};

}  // namespace gapless::transfer::rdma
