#include "transfer/choice/corrected_send.hpp"

#include <array>
#include <atomic>
#include <exception>

#include "base/hash.hpp"
#include "base/per_thread.hpp"
#include "base/settings.hpp"
#include "model/corrections/correction.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/host_trial.hpp"
#include "transfer/report/report.hpp"

namespace gapless::transfer {
namespace {

using model::Correction;

/// To count shorter messages would take a noticeable part of their time.
constexpr layout::Offset shortest_corrected = 1024;

using Clock = CorrectedSend::Clock;

/// Sends of one kind.
struct Kind {
  std::uint64_t key = 0;
  Scheme predicted = Scheme::native, other = Scheme::native;
  Correction correction{};
  // Of a timed send that has ended, until the next send of the kind begins.
  bool is_next_awaited = false;
  Correction::Way last_way{};
  Clock::time_point last_begin{};
  float last_ns = 0;

  Scheme scheme(Correction::Way way) const noexcept { return way == Correction::Way::predicted ? predicted : other; }
  Correction::Way way(Scheme scheme) const noexcept {
    return scheme == predicted ? Correction::Way::predicted : Correction::Way::other;
  }
  void note_last(Clock::time_point now) noexcept {
    is_next_awaited = false;
    correction.note(last_way, last_ns, static_cast<float>(ns_between(last_begin, now)));
  }
};

/// The kinds of one thread. Kinds with the same index replace each other.
using Kinds = std::array<Kind, 64>;

std::atomic<bool>& is_on() noexcept {
  static std::atomic<bool> on = settings().model != "fixed";
  return on;
}

/// Never 0. A layout may get the address of one that has been freed; the size mostly tells the two apart.
std::uint64_t key_of(const Buffer& buffer, std::uint64_t peer) noexcept {
  std::uint64_t key = mix(1, reinterpret_cast<std::uintptr_t>(buffer.type->layout.get()));
  key = mix(key, static_cast<std::uint64_t>(buffer.size()));
  key = mix(key, static_cast<std::uint64_t>(buffer.location.device));
  return mix(key, peer) | 1;
}

/// The place of the kind with that key, which another kind may have; null where there is no memory.
Kind* find(std::uint64_t key) noexcept {
  try {
    Kinds& kinds = of_this_thread<Kinds>();
    return &kinds[(key >> 8) % kinds.size()];
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// The kind with that key; null where another kind has its place, or there is no memory.
Kind* find_still(std::uint64_t key) noexcept {
  Kind* const kind = find(key);
  return kind != nullptr && kind->key == key ? kind : nullptr;
}

}  // namespace

CorrectedSend::CorrectedSend(const Buffer& buffer, Scheme predicted, std::uint64_t peer) noexcept
    : buffer_(buffer), scheme_(predicted), is_reported_(report_wanted()) {
  if (buffer.size() >= shortest_corrected && is_on().load(std::memory_order_relaxed) && !is_any_forced()) {
    const std::uint64_t key = key_of(buffer, peer);
    if (Kind* const kind = find(key); kind != nullptr) {
      if (kind->key != key || kind->predicted != predicted) {
        *kind = {.key = key,
                 .predicted = predicted,
                 .other = next_best(buffer, Side::sender, predicted).value_or(predicted)};
      }
      if (kind->other != predicted) {
        if (kind->is_next_awaited) kind->note_last(Clock::now());
        const Correction::Turn turn = kind->correction.next();
        scheme_ = kind->scheme(turn.way);
        is_timed_ = turn.is_timed;
        key_ = key;
      }
    }
  }
  if (is_timed_ || is_reported_) begin_ = Clock::now();
}

CorrectedSend::CorrectedSend(const Buffer& buffer, Scheme scheme) noexcept
    : buffer_(buffer), scheme_(scheme), is_reported_(report_wanted()) {
  if (is_reported_) begin_ = Clock::now();
}

void CorrectedSend::end() noexcept {
  if (!is_timed_ && !is_reported_) return;
  const double ns = ns_between(begin_, Clock::now());
  report(ns);
  Kind* const kind = is_timed_ ? find_still(key_) : nullptr;
  if (kind == nullptr) return;
  kind->is_next_awaited = true;
  kind->last_way = kind->way(scheme_);
  kind->last_begin = begin_;
  kind->last_ns = static_cast<float>(ns);
}

void CorrectedSend::end(double ns, double until_next_ns) noexcept {
  report(ns);
  if (Kind* const kind = is_timed_ ? find_still(key_) : nullptr)
    kind->correction.note(kind->way(scheme_), static_cast<float>(ns), static_cast<float>(until_next_ns));
}

void CorrectedSend::report(double ns) const noexcept {
  if (!is_reported_) return;
  report_send(buffer_, scheme_, ns, expected_ns_ ? *expected_ns_ : predict_message_ns(scheme_, buffer_));
}

bool is_corrected() noexcept { return is_on().load(std::memory_order_relaxed); }

void set_correction(bool on) noexcept { is_on().store(on, std::memory_order_relaxed); }

}  // namespace gapless::transfer

extern "C" bool gapless_transfer_set_correction(bool is_on) {
  const bool before = gapless::transfer::is_corrected();
  gapless::transfer::set_correction(is_on);
  return before;
}
