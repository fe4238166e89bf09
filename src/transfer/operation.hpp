// One side of one message: its scheme, the packed bytes while the message is under way, and the movement of the bytes.
//
// The caller sends or receives packed_size() bytes at packed_data(), by any means, so this layer knows nothing of MPI.
// A sender starts, and sends once the start is not under way any more; a receiver starts, receives, and finishes.
// Nothing here knows whether a blocking or a nonblocking call is served: a blocking one waits, others advance() now and
// then.
//
// GPU work is ordered after everything the program has issued to its default stream.
#pragma once

#include <cstddef>
#include <span>

#include "transfer/message.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer {

class Operation {
 public:
  /// Chooses the scheme.
  Operation(const Buffer& buffer, Side side) noexcept;
  /// Waits for what is under way.
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  Scheme scheme() const noexcept { return scheme_; }

  // Of native operations there is nothing more to call.

  /// Gets a pool buffer; a sender begins to pack into it.
  Result start() noexcept;
  /// The message has arrived with that many bytes: begins to unpack them, and touches no other byte of the user's
  /// buffer.
  Result finish(std::size_t received) noexcept;
  /// Goes on with either, without waiting.
  Result advance() noexcept;
  /// Goes on until it is not under way: `result` of start() or finish(), or how that ended.
  Result wait(Result result) noexcept;

  std::byte* packed_data() const noexcept { return packed_.data(); }
  std::size_t packed_size() const noexcept { return static_cast<std::size_t>(movement_.buffer.size()); }

 private:
  friend void finish_together(std::span<struct Arrival> arrivals) noexcept;
  Result move(layout::Offset end) noexcept;

  Scheme scheme_;
  Side side_;
  bool is_under_way_ = false;
  PoolBuffer packed_;
  schemes::Movement movement_;
};

/// A message that has arrived.
struct Arrival {
  Operation* operation;
  std::size_t received;
  Result result = Result::under_way;
};
/// finish() and wait() for all of them, with one launch a GPU where their schemes allow that. Each has its result.
void finish_together(std::span<Arrival> arrivals) noexcept;

}  // namespace gapless::transfer
