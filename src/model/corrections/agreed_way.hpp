// Chooses between two ways for calls that several processes make together, where all processes must take the same way:
// the library's own, or another one that is predicted to be sooner.
//
// The processes vote at rare calls: the first, second, fourth, eighth ... and an eighth of the way from one of these to
// the next, at an odd call, so that in a program whose calls alternate between two kinds of memory both kinds vote.
// Between two votes all processes take the way that the last vote has chosen, and each process times its calls. A
// process votes with its least time by each way, because disturbances of the machine only add to times; of all
// processes' votes the longest time counts. First the other way is taken, then the library's, and from the eighth call
// on the sooner one. A slower way that is not far slower is tried again from each power of two to the vote after it: in
// an eighth of the calls at most.
//
// All processes give decide() the same numbers, so that all of them are in the same state but for their own times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace gapless::model {

class AgreedWay {
 public:
  enum class Way : std::uint8_t { library, other };
  /// A process's vote: the greatest of all votes wins.
  enum class Wish : std::uint8_t {
    library,  ///< nobody gains by the other way
    sooner,   ///< the other way is predicted to gain: both are timed
    other,    ///< the other way, in any case
  };

  static constexpr float unknown_ns = std::numeric_limits<float>::infinity();
  static constexpr float worth_trying = 1.5F;  ///< a way above this multiple of the other's time is not tried again

  /// Counts a call. Does a vote precede the call?
  bool is_vote_due() noexcept;
  /// This process's least time by a way, since the last but one power of two at which all took that way; unknown_ns
  /// without one.
  float least_ns(Way way) const noexcept { return std::min(of(way).now_ns, of(way).before_ns); }
  /// The result of a vote: the strongest wish, and the longest of all processes' least times.
  void decide(Wish wish, float library_ns, float other_ns) noexcept;

  Way way() const noexcept { return way_; }
  /// Are times of calls wanted?
  bool is_timed() const noexcept { return is_timed_; }
  /// What a call took.
  void note(float ns) noexcept;

 private:
  /// The least time of one way, since the last power of two and before that.
  struct Least {
    float now_ns = unknown_ns, before_ns = unknown_ns;
  };

  const Least& of(Way way) const noexcept { return least_[static_cast<std::size_t>(way)]; }
  Least& of(Way way) noexcept { return least_[static_cast<std::size_t>(way)]; }
  Way sooner(float library_ns, float other_ns) const noexcept;
  void take(Way way) noexcept;

  std::array<Least, 2> least_{};
  std::uint32_t calls_ = 0;
  Way way_ = Way::library;
  bool is_timed_ = false;
  bool is_first_ = true;  ///< is the next call the first by its way? A first call takes longer
};

}  // namespace gapless::model
