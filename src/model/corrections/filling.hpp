// How memory is filled that another process reads each time: straight, or by way of a buffer and string copies.
//
// The reader's caches hold such memory when it is filled again. Where they are near, packing straight into it is best.
// Where they are far, its ordinary stores wait for each line, and it is sooner to pack into a buffer in this CPU's own
// caches and to copy that (pack/host/string_copy.hpp). No process is told reliably where another one runs, so now and
// then a piece is packed into the buffer and copied in one of both ways, in turn, and both are timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "model/corrections/recent.hpp"

namespace gapless::model {

/// Of memory that one other process reads. Thread-safe; no call waits.
class Filling {
 public:
  /// Pieces that are filled straight and are not timed: to touch the memory for the first time takes longer.
  static constexpr std::uint32_t untimed = 64;
  /// One of so many pieces is timed: of those after, and once enough is known.
  static constexpr std::uint32_t timed_at_first = 4, timed_later = 64;
  static constexpr std::size_t enough = 3;  ///< times of each way, the last ones, whose median counts
  /// The reader is far where ordinary stores take so much longer than into the writer's own memory: that many times
  /// what a string copy takes. Once would be enough to make up for the copy; between two chiplets they take 4 times
  /// longer.
  static constexpr float far = 1.5F;

  struct Turn {
    bool is_timed = false;  ///< how long the copy takes
    bool is_by_string = false;

    /// Is it packed into a buffer, and copied?
    bool is_copied() const noexcept { return is_timed || is_by_string; }
  };

  /// How the next piece is filled. A few nanoseconds.
  Turn next() noexcept;
  /// What the copy of a timed piece has taken for each byte: by ordinary stores, how much more than in the writer's own
  /// memory.
  void note(Turn turn, float ns_per_byte) noexcept;

  bool is_far() const noexcept { return is_far_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> filled_{0}, timed_every_{timed_at_first};
  std::atomic<bool> is_far_{false};
  std::mutex mutex_;  ///< guards what follows
  Recent<enough> ordinary_{}, by_string_{};
};

}  // namespace gapless::model
