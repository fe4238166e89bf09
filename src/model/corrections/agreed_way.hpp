// Which of two ways calls of one kind take that several processes make together, where all of them must take the same:
// the library's own, or another one that is predicted to be sooner.
//
// The processes vote at rare calls: the first, second, fourth, eighth ... and an eighth of the way to the next of
// these. Between two votes all take the way that the last one has led to, and each process times its calls. A vote
// tells of each way the least of the last times, for what disturbs the machine only adds to them, at the process that
// needs longest. First the other way is taken, then the library's, and from the eighth call on the sooner one. The
// slower one is tried again from a power of two to the vote after it unless it is far slower: in an eighth of the calls
// at most.
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
  static constexpr float worth_trying = 1.5F;  ///< a way that needs more times the other's time is not tried again

  /// Counts a call. Is there a vote before it?
  bool is_vote_due() noexcept;
  /// This process's least time by a way, since the last but one power of two at which all took it; unknown_ns: none.
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
  bool is_first_ = true;  ///< the next call is the first of its way, which needs longer
};

}  // namespace gapless::model
