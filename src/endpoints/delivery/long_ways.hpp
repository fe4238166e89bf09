// Whether a message to another process of the node is left in an outbox, or its receiver reads it where it lies.
//
// Of up to 32 KiB the former is as soon between two endpoints, and sooner where many are at work. Of longer ones, up to
// what an outbox takes, the latter is sooner while the system's locks are free, and may take twenty times as long while
// they are not, which depends on where the buffers of other threads lie. So both are measured, in the use that is made
// of them: the time of the read, and of the longer of the two copies, for rows of messages overlap them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

/// The time since the object was made.
class Stopwatch {
 public:
  std::uint32_t ns() const noexcept {
    const auto passed = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count();
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::min<std::int64_t>(passed, most));
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The ways of one sender's long messages. Not thread-safe.
class LongWays {
 public:
  /// Is the next message of so many bytes left in the outbox?
  bool goes_to_outbox(MPI_Count bytes) noexcept {
    if (bytes <= most_unmeasured) return true;
    if (attached_ == 0 || in_outbox_ == 0) return attached_ != 0;
    const bool is_trial = ++messages_ % between_trials == 0;
    return (in_outbox_ < attached_) != is_trial;
  }
  void note_in_outbox(MPI_Count bytes, double ns) noexcept {
    if (bytes > most_unmeasured)
      in_outbox_ = in_outbox_ == 0 ? of_each(bytes, ns) : mean(in_outbox_, of_each(bytes, ns));
  }
  /// A slow read counts at once, a fast one little by little: a trial alone is not slowed down by others of its kind.
  void note_attached(MPI_Count bytes, double ns) noexcept {
    if (bytes <= most_unmeasured) return;
    const double sample = in_outbox_ == 0 ? of_each(bytes, ns) : std::min(of_each(bytes, ns), most_times * in_outbox_);
    attached_ = std::max(sample, mean(attached_, sample));
  }

 private:
  static constexpr MPI_Count most_unmeasured = 32 << 10;
  static constexpr unsigned between_trials = 256;
  static constexpr double most_times = 8;  ///< of the outbox, so that a thread that was interrupted is soon forgotten
  static double of_each(MPI_Count bytes, double ns) noexcept { return std::max(ns, 1.0) / static_cast<double>(bytes); }
  static double mean(double old, double sample) noexcept { return old + (sample - old) / 4; }

  double attached_ = 0, in_outbox_ = 0;  ///< nanoseconds a byte; 0: not measured
  unsigned messages_ = 0;
};

}  // namespace gapless::mpi::endpoints
