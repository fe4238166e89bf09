#include "transfer/choice/corrected_send.hpp"

#include <array>
#include <atomic>
#include <exception>

#include "base/per_thread.hpp"
#include "base/settings.hpp"
#include "model/corrections/correction.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/choice/host_trial.hpp"
#include "transfer/report/report.hpp"

namespace gapless::transfer {
namespace {

using model::Correction;

/// Shorter messages take so little that counting them would be felt.
constexpr layout::Offset shortest_corrected = 1024;

/// Sends of one kind.
struct Kind {
  std::uint64_t key = 0;
  Scheme predicted = Scheme::native, other = Scheme::native;
  Correction correction{};

  Scheme scheme(Correction::Way way) const noexcept { return way == Correction::Way::predicted ? predicted : other; }
};

/// Of one thread. A kind gives way to another one of the same place.
using Kinds = std::array<Kind, 64>;

std::atomic<bool>& is_on() noexcept {
  static std::atomic<bool> on = settings().model != "fixed";
  return on;
}

/// Never 0. A layout's address may be another layout's later, which its size mostly tells.
std::uint64_t key_of(const Buffer& buffer, std::uint64_t peer) noexcept {
  std::uint64_t key = mix(1, reinterpret_cast<std::uintptr_t>(buffer.type->layout.get()));
  key = mix(key, static_cast<std::uint64_t>(buffer.size()));
  key = mix(key, static_cast<std::uint64_t>(buffer.location.device));
  return mix(key, peer) | 1;
}

/// Null where there is no memory.
Kind* find(std::uint64_t key) noexcept {
  try {
    Kinds& kinds = of_this_thread<Kinds>();
    return &kinds[(key >> 8) % kinds.size()];
  } catch (const std::exception&) {
    return nullptr;
  }
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
  if (is_timed_ || is_reported_) end(std::chrono::duration<double, std::nano>(Clock::now() - begin_).count());
}

void CorrectedSend::end(double ns) noexcept {
  if (is_reported_) {
    const double predicted_ns = expected_ns_ ? *expected_ns_ : predict_message_ns(scheme_, buffer_);
    report_send(buffer_, scheme_, ns, predicted_ns);
  }
  if (!is_timed_) return;
  Kind* const kind = find(key_);
  if (kind == nullptr || kind->key != key_) return;
  const auto way = scheme_ == kind->predicted ? Correction::Way::predicted : Correction::Way::other;
  kind->correction.note(way, static_cast<float>(ns));
}

bool is_corrected() noexcept { return is_on().load(std::memory_order_relaxed); }

void set_correction(bool on) noexcept { is_on().store(on, std::memory_order_relaxed); }

}  // namespace gapless::transfer
