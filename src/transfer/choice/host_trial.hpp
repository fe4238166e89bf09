// Chooses the way of messages in host memory by what equal ones have taken in this run, not by prediction alone
// (model/corrections/trials.hpp). What is tried is a call that exchanges, or all messages that a thread starts until it
// waits for them: a whole whose time is the program's, whoever of both ends the work falls to. Tried are the ways as
// predicted, all left to the library, and all packed.
//
// What sends alone is over sooner the more of the work is left to the receiver, for whom the program then waits in some
// other call. So where such wholes take most of a thread's time, what counts is the time from the beginning of one to
// that of the next, of any kind; elsewhere that would be time the program computes, and it is the whole's own.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/scoped_value.hpp"
#include "model/corrections/trials.hpp"

namespace gapless::transfer {

enum class HostWay : std::uint8_t { predicted, native, packed };
inline constexpr std::size_t host_way_count = 3;

/// While the result lives, choices for host memory of this thread are that way. Where a scheme is forced, as that says.
ScopedValue<HostWay> choose_always(HostWay way) noexcept;

/// Of this thread, as the innermost scope says.
HostWay host_way() noexcept;

inline double ns_between(std::chrono::steady_clock::time_point begin,
                         std::chrono::steady_clock::time_point end) noexcept {
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

/// One such whole. Each thread finds out for itself.
class HostTrial {
 public:
  using Clock = std::chrono::steady_clock;

  /// `key` tells apart what is not alike. Takes some ten nanoseconds; a thread's first one allocates its table.
  explicit HostTrial(std::uint64_t key) noexcept;

  HostWay way() const noexcept { return static_cast<HostWay>(turn_.way); }
  bool is_timed() const noexcept { return key_ != 0 && turn_.is_timed; }
  /// It has ended well. `whole` names all of it, where the key names its beginning: what has begun alike and is not the
  /// same tells nothing.
  void end(std::uint64_t whole = 0) noexcept;
  /// The same of one that has ended earlier, where the next whole begins now.
  void end_at(Clock::time_point when, std::uint64_t whole) noexcept;
  /// The same, with times that are not measured: its own, and that from its beginning to the next one's.
  void end(double ns, double until_next_ns, std::uint64_t whole) noexcept;
  /// All of it went to the library as it is, though it was to be packed: to be called in place of end(). What is so
  /// `left_alone_until_tried_no_more` times is tried no more. (The first uses of a datatype are the library's.)
  void was_left_alone() noexcept;

  static constexpr unsigned left_alone_until_tried_no_more = 64;

 private:
  std::uint64_t key_ = 0;  ///< 0: not tried
  model::Trials::Turn turn_{};
  Clock::time_point begin_{};
};

}  // namespace gapless::transfer
