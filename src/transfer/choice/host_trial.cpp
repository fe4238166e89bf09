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

/// Wholes that are alike.
struct Kind {
  std::uint64_t key = 0, whole = 0;
  unsigned left_alone = 0;  ///< times
  model::Trials trials{};
};

/// Of one thread: a halo of 26 faces, edges and corners, each side by side with others, has room.
struct Kinds {
  static constexpr std::size_t count = 256, looks = 4;
  std::array<Kind, count> all;

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
    // What is predicted is first; how much the others are thought to take is not known.
    constexpr std::array<double, host_way_count> first_predicted{1, 2, 2};
    *unused = {.key = key, .trials = model::Trials(first_predicted)};
    return *unused;
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

HostWayScope::HostWayScope(HostWay way) noexcept : before_(std::exchange(in_force, way)) {}
HostWayScope::~HostWayScope() { in_force = before_; }

HostWay host_way() noexcept { return in_force; }

HostTrial::HostTrial(std::uint64_t key) noexcept {
  if (!is_corrected() || is_any_forced()) return;
  Kinds* const all = kinds();
  if (all == nullptr) return;
  Kind& kind = all->find(key | 1);
  if (kind.left_alone >= left_alone_until_tried_no_more) return;
  key_ = key | 1;
  turn_ = kind.trials.next();
  if (turn_.is_timed) begin_ = Clock::now();
}

void HostTrial::end(std::uint64_t whole) noexcept {
  if (key_ != 0 && turn_.is_timed) end(std::chrono::duration<double, std::nano>(Clock::now() - begin_).count(), whole);
}

void HostTrial::end(double ns, std::uint64_t whole) noexcept {
  if (key_ == 0 || !turn_.is_timed) return;
  // Should another kind have taken the place, this one begins anew.
  Kind& kind = kinds()->find(key_);
  if (std::exchange(kind.whole, whole) == whole) kind.trials.note(turn_, static_cast<float>(ns));
}

void HostTrial::was_left_alone() noexcept {
  if (key_ != 0) ++kinds()->find(key_).left_alone;
}

}  // namespace gapless::transfer
