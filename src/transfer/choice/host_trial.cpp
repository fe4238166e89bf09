#include "transfer/choice/host_trial.hpp"

#include <array>
#include <exception>
#include <utility>

#include "base/per_thread.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/corrected_send.hpp"

namespace gapless::transfer {
namespace {

constinit thread_local HostWay in_force [[gnu::tls_model("initial-exec")]] = HostWay::predicted;

using Clock = HostTrial::Clock;

/// Begins with the predicted way. The other ways' times are not predicted: any greater number does for them.
model::Trials new_trials() noexcept {
  constexpr std::array<double, host_way_count> first_predicted{1, 2, 2};
  return model::Trials(first_predicted);
}

/// Wholes of one kind, by their key.
struct Kind {
  std::uint64_t key = 0, whole = 0;
  unsigned left_alone = 0;  ///< how often
  bool is_most = false;     ///< do these wholes take most of the thread's time, by some way?
  model::Trials trials{};

  /// Notes a whole that took `ns`. The next whole began `until_next_ns` after the beginning of this one.
  void note(const model::Trials::Turn& turn, double ns, double until_next_ns, std::uint64_t name) noexcept {
    if (std::exchange(whole, name) != name) return;
    if (const bool takes_most = 2 * ns > until_next_ns; takes_most && !is_most) {
      is_most = true;
      trials = new_trials();
      return;
    }
    trials.note(turn, static_cast<float>(is_most ? until_next_ns : ns));
  }
};

/// A timed whole that has ended, until the thread begins the next one.
struct Ended {
  std::uint64_t key = 0, whole = 0;  ///< key 0: none
  model::Trials::Turn turn{};
  Clock::time_point begin{};
  double ns = 0;
};

/// The kinds of one thread, with room for a halo of 26 faces, edges and corners beside other kinds.
struct Kinds {
  static constexpr std::size_t count = 256, looks = 4;
  std::array<Kind, count> all;
  Ended last;

  Kind& find(std::uint64_t key) noexcept {
    const std::size_t first = (key >> 8) % count;
    Kind* unused = &all[first];
    for (std::size_t i = 0; i < looks; ++i) {
      Kind& kind = all[(first + i) % count];
      if (kind.key == key) return kind;
      if (kind.key == 0) {
        unused = &kind;
        break;
      }
    }
    *unused = {.key = key, .trials = new_trials()};
    return *unused;
  }

  void note_last(Clock::time_point now) noexcept {
    // If another kind has taken the place of the whole's kind, the whole's kind begins anew.
    find(last.key).note(last.turn, last.ns, ns_between(last.begin, now), last.whole);
    last.key = 0;
  }
};

Kinds* kinds() noexcept {
  try {
    return &of_this_thread<Kinds>();
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

ScopedValue<HostWay> choose_always(HostWay way) noexcept { return {in_force, way}; }

HostWay host_way() noexcept { return in_force; }

HostTrial::HostTrial(std::uint64_t key) noexcept {
  if (!is_corrected() || is_any_forced()) return;
  Kinds* const all = kinds();
  if (all == nullptr) return;
  const bool is_last_awaited = all->last.key != 0;
  if (is_last_awaited) all->note_last(begin_ = Clock::now());
  Kind& kind = all->find(key | 1);
  if (kind.left_alone >= left_alone_until_tried_no_more) return;
  key_ = key | 1;
  turn_ = kind.trials.next();
  if (turn_.is_timed && !is_last_awaited) begin_ = Clock::now();
}

unsigned HostTrial::claim_rest() noexcept { return key_ != 0 ? kinds()->find(key_).trials.claim_rest() : 0; }

void HostTrial::end(std::uint64_t whole) noexcept {
  if (is_timed()) kinds()->last = {key_, whole, turn_, begin_, ns_between(begin_, Clock::now())};
}

void HostTrial::end_at(Clock::time_point when, std::uint64_t whole) noexcept {
  if (is_timed()) end(ns_between(begin_, when), ns_between(begin_, Clock::now()), whole);
}

void HostTrial::end(double ns, double until_next_ns, std::uint64_t whole) noexcept {
  if (is_timed()) kinds()->find(key_).note(turn_, ns, until_next_ns, whole);
}

void HostTrial::went_native() noexcept {
  if (key_ != 0) ++kinds()->find(key_).left_alone;
}

}  // namespace gapless::transfer
