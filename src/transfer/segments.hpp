// Packed bytes between a GPU's memory and host memory that the GPU does not address, in segments.
//
// A kernel packs into one page-locked segment while the CPU empties another one, or unpacks one while the CPU fills
// another (the buffer-centric segment scheme of Santhanaraman, Wu and Panda, 2003, between the GPU and the host). The
// caller tells how far the bytes may move, so a message that arrives piece by piece can be unpacked on its way.
#pragma once

#include <array>
#include <cstddef>

#include "pack/gpu_engine.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// One movement at a time, by the thread that begins the movement.
class Segments {
 public:
  Segments() noexcept = default;
  /// Waits for what is under way.
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  /// Can a movement of so many bytes have a segment at all? If so, a later begin() finds the segment, unless another
  /// movement takes it.
  static bool are_to_be_had(int device, std::size_t bytes) noexcept;

  /// Begins a movement between job.memory, which is memory of `device`, and job.packed, in host memory. Both, and the
  /// layout, must stay valid to the end. Nothing moves yet. ok, or out_of_memory.
  Result begin(const pack::Job& job, int device) noexcept;
  /// Packed bytes before `end` may move from now on: the bytes have arrived, or there is room for them.
  void allow(pack::Offset end) noexcept { allowed_ = end; }
  /// Goes on without waiting, but for one copy of a segment by the CPU at most. under_way as long as bytes are left;
  /// after a failure nothing uses the memory any more.
  Result advance() noexcept;
  /// Goes on until all allowed bytes have moved: ok, under_way where bytes are left, or a failure.
  Result wait() noexcept;

  /// How many packed bytes have moved.
  pack::Offset moved() const noexcept { return moved_; }

 private:
  static constexpr std::size_t most_segments = 4;

  struct Segment {
    PoolBuffer memory;
    pack::Ticket ticket;
    pack::Offset begin = 0, end = 0;
  };

  bool packs() const noexcept { return job_.direction == pack::Direction::pack; }
  Segment& segment(std::size_t number) noexcept { return segments_[number % segment_count_]; }
  Segment& oldest() noexcept { return segment(ended_); }
  std::byte* packed_at(pack::Offset begin) const noexcept;
  bool may_issue() const noexcept;
  /// Issues the next segment. Where the movement unpacks, the CPU copies first.
  Result issue() noexcept;
  /// Ends the oldest segment, which is not under way. Where the movement packs, the CPU copies.
  Result end_oldest() noexcept;
  void wait_for_oldest() noexcept;
  /// Waits for what is under way and gives the segments back.
  Result close(Result result) noexcept;

  pack::Job job_{};
  int device_ = -1;
  std::size_t segment_bytes_ = 0;
  std::size_t segment_count_ = 0;
  std::array<Segment, most_segments> segments_;
  std::size_t issued_ = 0, ended_ = 0;  ///< segments of the movement
  pack::Offset next_ = 0, allowed_ = 0, moved_ = 0;
};

}  // namespace gapless::transfer
