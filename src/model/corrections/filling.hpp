// Chooses how to fill memory that another process reads each time: straight, or through a buffer and string copies.
//
// The reader's caches hold the memory when the memory is filled again. If these caches are near, packing straight into
// the memory is best. If they are far, ordinary stores wait for each line. Then a string copy
// (pack/host/string_copy.hpp) out of a buffer in this CPU's own caches is sooner. No process is told reliably where
// another one runs. So now and then a piece is packed into the buffer and copied, by ordinary stores and by a string
// copy in turn, and the copies are timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "model/corrections/recent.hpp"

namespace gapless::model {

/// For memory that one other process reads. Thread-safe; no call waits.
class Filling {
 public:
  /// The first pieces, which are filled straight and are not timed: touching memory for the first time takes longer.
  static constexpr std::uint32_t untimed = 64;
  /// One of so many later pieces is timed: until enough times are known, and from then on.
  static constexpr std::uint32_t timed_at_first = 4, timed_later = 64;
  static constexpr std::size_t enough = 3;  ///< the median of the last so many times of each way counts
  /// The reader is far where ordinary stores take more than this multiple of a string copy's time beyond stores into
  /// the writer's own memory. A multiple of 1 would make up for the copy; between two chiplets ordinary stores take 4
  /// times longer.
  static constexpr float far = 1.5F;

  struct Turn {
    bool is_timed = false;  ///< is the copy timed?
    bool is_by_string = false;

    /// Is the piece packed into a buffer, and the buffer copied?
    bool is_copied() const noexcept { return is_timed || is_by_string; }
  };

  /// How the next piece is filled. A few nanoseconds.
  Turn next() noexcept;
  /// What the copy of a timed piece has taken, in nanoseconds for each byte; of ordinary stores, the time beyond a copy
  /// within the writer's own memory.
  void note(Turn turn, float ns_per_byte) noexcept;

  bool is_far() const noexcept { return is_far_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> filled_{0}, timed_every_{timed_at_first};
  std::atomic<bool> is_far_{false};
  std::mutex mutex_;  ///< guards what follows
  Recent<enough> ordinary_{}, by_string_{};
};

}  // namespace gapless::model
