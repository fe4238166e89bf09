// One side of one message: its scheme, the packed bytes while the message is under way, and the movement of the bytes.
//
// The caller sends or receives packed_size() bytes at packed_data(), by any means, so this layer knows nothing of MPI.
// A sender starts, and sends once the start is not under way any more; a receiver starts, receives, and finishes.
// Nothing here knows whether a blocking or a nonblocking call is served: a blocking one waits, others advance() now and
// then.
//
// GPU work is ordered after everything the program has issued to its default stream.
#pragma once

#include <array>
#include <cstddef>

#include "transfer/message.hpp"
#include "transfer/report/report.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer {

/// Movements of several messages: those that are one job of the same GPU's go in one launch, and copies between two
/// layouts are waited for together.
class Batch {
 public:
  Batch() noexcept = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// A job of that GPU.
  void add(const pack::Job& job, int device, pack::Reach reach) noexcept;
  /// A copy between two layouts, done by that GPU.
  void add(const pack::PairJob& job, int device) noexcept;
  /// What the program has issued to that GPU's default stream, because a peer will read memory that this work may still
  /// write.
  void await_default_stream(int device) noexcept;
  /// Moves what has been added. The first failure of any.
  Result run() noexcept;

 private:
  friend class Operation;
  static constexpr std::size_t most_jobs = 32;

  void note(Result result) noexcept {
    if (result_ == Result::ok) result_ = result;
  }

  void join_jobs() noexcept;
  bool is_empty() const noexcept { return count_ == 0 && pair_count_ == 0; }

  std::array<pack::Job, most_jobs> jobs_;
  std::array<pack::PairJob, 2 * most_jobs> pairs_;  ///< with room for all jobs
  std::size_t count_ = 0, pair_count_ = 0;
  int device_ = -1;
  int awaited_device_ = -1;
  pack::Reach reach_ = pack::Reach::this_gpu;
  Result result_ = Result::ok;
};

class Operation {
 public:
  /// Chooses the scheme.
  Operation(const Buffer& buffer, Side side) noexcept;
  /// Of a scheme that applies.
  Operation(const Buffer& buffer, Side side, Scheme scheme) noexcept;
  /// Waits for what is under way.
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// reserve() changes the scheme where memory of the scheme's kind is short.
  Scheme scheme() const noexcept { return scheme_; }

  // Of native operations there is nothing more to call.

  /// Gets a pool buffer, once.
  Result reserve() noexcept;
  /// Does so if that has not been done; a sender begins to pack into it what the memory holds now.
  Result start() noexcept;
  /// The message has arrived with that many bytes: begins to unpack them, and touches no other byte of the user's
  /// buffer.
  Result finish(std::size_t received) noexcept;
  /// Goes on with either, without waiting.
  Result advance() noexcept;
  /// Goes on until it is not under way: `result` of start() or finish(), or how that ended.
  Result wait(Result result) noexcept;

  /// The same as start() and finish(), done once the batch has run.
  void start_in(Batch& batch) noexcept;
  void finish_in(Batch& batch, std::size_t received) noexcept;

  /// Does it go in a batch together with others?
  bool joins_batches() const noexcept { return schemes::of(scheme_).is_one_job(); }

  std::byte* packed_data() const noexcept { return packed_.data(); }
  /// Where that is.
  device::Location packed_location() const noexcept { return packed_.location(); }
  std::size_t packed_size() const noexcept { return static_cast<std::size_t>(movement_.buffer.size()); }

 private:
  Result move(layout::Offset end) noexcept;
  void move_in(Batch& batch, layout::Offset end) noexcept;
  Result note(Result result) noexcept;

  Scheme scheme_;
  Side side_;
  bool is_under_way_ = false;
  PoolBuffer packed_;
  schemes::Movement movement_;
  MovementClock clock_;
};

}  // namespace gapless::transfer
