// Chooses the way of messages in host memory by what equal messages have taken in this run, not by prediction alone
// (model/corrections/trials.hpp). What is tried and timed is a whole: a call that exchanges, a round of blocking
// sends and receives, or all messages that a thread starts until it waits for them. The time of a whole is the
// program's, whichever end of a message has the work. Three ways are tried: as predicted, all left to the library, all
// packed.
//
// A whole of sends alone is over the sooner, the more work is left to the receiver; the program then waits for the
// receiver in another call. So where wholes of a kind take most of a thread's time, the time from the beginning of one
// whole to the beginning of the next, of any kind, counts. Elsewhere most of that time is the program's computing, and
// the whole's own time counts.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/scoped_value.hpp"
#include "model/corrections/trials.hpp"

namespace gapless::transfer {

enum class HostWay : std::uint8_t { predicted, native, packed };
inline constexpr std::size_t host_way_count = 3;

/// While the result lives, this thread's choices for host memory are that way. Callers ask for a way other than
/// `predicted` only where no scheme is forced.
ScopedValue<HostWay> choose_always(HostWay way) noexcept;

/// The way of this thread, as the innermost scope says.
HostWay host_way() noexcept;

inline double ns_between(std::chrono::steady_clock::time_point begin,
                         std::chrono::steady_clock::time_point end) noexcept {
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

/// One whole. Each thread has trials of its own.
class HostTrial {
 public:
  using Clock = std::chrono::steady_clock;

  /// `key` tells kinds of wholes apart. Takes some ten nanoseconds; a thread's first whole allocates the thread's
  /// table.
  explicit HostTrial(std::uint64_t key) noexcept;

  HostWay way() const noexcept { return static_cast<HostWay>(turn_.way); }
  bool is_timed() const noexcept { return key_ != 0 && turn_.is_timed; }
  /// How many wholes of the kind, which nobody needs to time, go the same way next. They get no object of their own.
  unsigned claim_rest() noexcept;
  /// The whole has ended well. Where the key names only the beginning of a whole, `whole` names all of it: a whole that
  /// has begun like the last one of its kind, and then differs, is not noted.
  void end(std::uint64_t whole = 0) noexcept;
  /// The same for a whole that has ended at `when`, where the next whole begins now.
  void end_at(Clock::time_point when, std::uint64_t whole) noexcept;
  /// The same, with given times: the whole's own, and the time from its beginning to that of the next whole. For tests.
  void end(double ns, double until_next_ns, std::uint64_t whole) noexcept;
  /// To be called in place of end() where all of the whole has gone to the library as it is, though the way was to
  /// pack. (The first uses of a datatype are the library's.) A kind with `left_alone_until_tried_no_more` such wholes
  /// is tried no more.
  void went_native() noexcept;

  static constexpr unsigned left_alone_until_tried_no_more = 64;

 private:
  std::uint64_t key_ = 0;  ///< 0: not tried
  model::Trials::Turn turn_{};
  Clock::time_point begin_{};
};

}  // namespace gapless::transfer
