// What a scheme is: an object without state that says whether the scheme serves a buffer, predicts its time, and moves
// the bytes. The movement keeps the state of what is under way.
//
// To add one: a file here, its name in transfer::Scheme, and its place in schemes.cpp.
#pragma once

#include <optional>

#include "pack/gpu_engine.hpp"
#include "pack/job.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/message.hpp"
#include "transfer/segments.hpp"

namespace gapless::transfer::schemes {

/// Packed bytes [0, end) that move between the user's buffer and packed memory.
struct Movement {
  Buffer buffer;
  pack::Direction direction = pack::Direction::pack;
  layout::Offset end = 0;
  std::byte* packed = nullptr;

  // What the scheme has under way.
  pack::Ticket ticket{};
  void* stream = nullptr;
  PoolBuffer between;                ///< GPU memory on the way
  std::optional<Segments> segments;  ///< page-locked memory on the way

  pack::Job job() const noexcept { return buffer.job(direction, 0, end, packed); }
};

class Base {
 public:
  /// Can a buffer that is not empty go this way?
  virtual bool applies(const Buffer& buffer) const noexcept = 0;
  /// The predicted time of this side of the message, in nanoseconds, without the time that all schemes for that memory
  /// have in common.
  virtual double predict_ns(const Buffer& buffer, Side side) const noexcept = 0;
  /// Memory for the packed bytes, which the MPI library reads or writes. Empty if there is none.
  virtual PoolBuffer packed_memory(const Buffer& buffer) const noexcept = 0;

  /// Begins to move the bytes. ok: all bytes have moved. After a failure nothing uses the buffers any more.
  virtual Result start(Movement& movement) const noexcept = 0;
  /// Goes on after `under_way`, without waiting.
  virtual Result advance(Movement& movement) const noexcept = 0;
  /// Goes on until the movement is over.
  virtual Result wait(Movement& movement) const noexcept = 0;
  /// Is a movement one job of the buffer's GPU, which may go in a batch with others?
  virtual bool is_one_job() const noexcept { return false; }

 protected:
  ~Base() = default;
};

extern const Base& native;
extern const Base& packed;
extern const Base& oneshot;
extern const Base& staged;
extern const Base& pipelined;
extern const Base& device;
// Two processes together go by the following schemes, so no buffer alone can: headers::Offers decides.
extern const Base& slots;
extern const Base& direct;
extern const Base& fabric_pipelined;
extern const Base& gather_write;
extern const Base& scatter_read;
extern const Base& multi_write;

const Base& of(Scheme scheme) noexcept;

/// A scheme that moves no bytes here: the MPI library does, or two processes do beside the library.
class MovesNothing : public Base {
 public:
  PoolBuffer packed_memory(const Buffer&) const noexcept override { return {}; }
  Result start(Movement&) const noexcept override { return Result::ok; }
  Result advance(Movement&) const noexcept override { return Result::ok; }
  Result wait(Movement&) const noexcept override { return Result::ok; }

 protected:
  ~MovesNothing() = default;
};

// For schemes whose movement is one job between GPU memory and packed memory of one kind.

Result start_job(Movement& movement, device::MemoryKind packed) noexcept;
Result poll_job(Movement& movement) noexcept;
Result wait_for_job(Movement& movement) noexcept;

template <device::MemoryKind packed_kind>
class OneJob : public Base {
 public:
  PoolBuffer packed_memory(const Buffer& buffer) const noexcept override {
    return {packed_kind, buffer.location.device, static_cast<std::size_t>(buffer.size())};
  }
  Result start(Movement& movement) const noexcept override { return start_job(movement, packed_kind); }
  Result advance(Movement& movement) const noexcept override { return poll_job(movement); }
  Result wait(Movement& movement) const noexcept override { return wait_for_job(movement); }
  bool is_one_job() const noexcept override { return true; }

 protected:
  ~OneJob() = default;
};

/// The time of one side of a message through host memory in the MPI library, beside a message through GPU memory; 0
/// under libraries that read no GPU memory.
double host_message_ns(std::size_t bytes) noexcept;
/// The time to get page-locked memory for the packed bytes, if no buffer of that length is kept.
double page_locking_ns(std::size_t bytes) noexcept;

}  // namespace gapless::transfer::schemes
