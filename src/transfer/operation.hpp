// One side of one message: its scheme, the packed bytes while the message is under way, and the movement of the bytes.
//
// The caller sends or receives packed_size() bytes at packed_data(), by any means, so this layer knows nothing of MPI.
// A sender calls start(), and sends once the start is over; a receiver calls start(), receives, and calls finish(). The
// operation does not know whether a blocking or a nonblocking call is served: a blocking call waits, other calls
// advance() now and then.
//
// GPU work is ordered after everything the program has issued to its default stream.
#pragma once

#include <array>
#include <cstddef>

#include "transfer/message.hpp"
#include "transfer/report/report.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer {

/// Movements of several messages. Up to 32 jobs of the same GPU go in one launch, and copies between two layouts are
/// waited for together.
class Batch {
 public:
  Batch() noexcept = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// Adds a job of that GPU.
  void add(const pack::Job& job, int device, pack::Reach reach) noexcept;
  /// Adds a copy between two layouts by that GPU.
  void add(const pack::PairJob& job, int device) noexcept;
  /// Has run() wait for what the program has issued to that GPU's default stream: a peer will read memory that this
  /// work may still write.
  void await_default_stream(int device) noexcept;
  /// Moves everything that has been added. Returns the first failure.
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
  /// An operation by `scheme`. Precondition: the scheme applies.
  Operation(const Buffer& buffer, Side side, Scheme scheme) noexcept;
  /// Waits for what is under way.
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// reserve() changes the scheme where memory of the scheme's kind is short.
  Scheme scheme() const noexcept { return scheme_; }

  // The functions below are not for native operations.

  /// Gets a pool buffer, once.
  Result reserve() noexcept;
  /// reserve(), unless that has been called; a sender then begins to pack what the memory holds now.
  Result start() noexcept;
  /// Begins to unpack a message that has arrived with `received` bytes. Touches no other byte of the user's buffer.
  Result finish(std::size_t received) noexcept;
  /// Goes on with start() or finish(), without waiting.
  Result advance() noexcept;
  /// Goes on until start() or finish(), which has returned `result`, is over. Returns the final result.
  Result wait(Result result) noexcept;

  /// start() and finish() by a batch; done once the batch has run.
  void start_in(Batch& batch) noexcept;
  void finish_in(Batch& batch, std::size_t received) noexcept;

  /// Does the operation go in a batch together with others?
  bool joins_batches() const noexcept { return schemes::of(scheme_).is_one_job(); }

  std::byte* packed_data() const noexcept { return packed_.data(); }
  /// The location of packed_data().
  device::Location packed_location() const noexcept { return packed_.location(); }
  /// Is it worth having memory for the packed bytes, for a message that may as well do without? Long buffers alone are
  /// not always (transfer/buffers/long_buffers.hpp). To be asked once, of an operation without memory; gets the memory
  /// if so.
  bool takes_memory_if_worth_it() noexcept;
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
