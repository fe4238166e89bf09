#include "transfer/pulls/offering.hpp"

#include <array>
#include <atomic>

#include "base/settings.hpp"
#include "fabric/registry.hpp"
#include "model/gpu.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/pulls/strided.hpp"

namespace gapless::transfer::pulls {

using headers::PullWords;
using model::gpu_tuning;
using State = PullWords::State;

namespace {

constinit std::array<std::atomic<bool>, headers::pull_count> are_attached{};  ///< words that an offer goes on with
constinit std::atomic<unsigned> next_words{0};

}  // namespace

PullWords* take_words(std::uint32_t& number) noexcept {
  headers::InboxHead& own = headers::own_inbox().head();
  const unsigned first = next_words.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < headers::pull_count; ++i) {
    number = (first + i) % headers::pull_count;
    if (are_attached[number].load(std::memory_order_relaxed)) continue;
    if (are_attached[number].exchange(true, std::memory_order_acquire)) continue;
    const State state = own.pulls[number].state.load(std::memory_order_acquire);
    if (state == State::free || state == State::done) {
      next_words.store(number + 1, std::memory_order_relaxed);
      return &own.pulls[number];
    }
    are_attached[number].store(false, std::memory_order_release);  // a copy waits for its receiver
  }
  return nullptr;
}

void leave_words(PullWords* words) noexcept {
  are_attached[static_cast<std::size_t>(words - headers::own_inbox().head().pulls)].store(false,
                                                                                          std::memory_order_release);
}

bool may_be_pulled(const Buffer& buffer) noexcept {
  if (!settings().pull || !buffer.type->layout->is_strided()) return false;
  return buffer.size() < gpu_tuning.long_pull || is_contiguous(buffer) ||
         buffer.type->facts.longest_block >= gpu_tuning.shortest_long_pulled_block;
}

bool is_within(const Buffer& buffer, const device::MemoryHandle& allocation) noexcept {
  const auto span = span_of(buffer.type->facts, buffer.count, buffer.type->extent);
  if (!span) return false;
  const auto origin = reinterpret_cast<std::uintptr_t>(buffer.memory);
  const std::uint64_t first = origin + static_cast<std::uint64_t>(span->first);
  const std::uint64_t bytes = static_cast<std::uint64_t>(span->end) - static_cast<std::uint64_t>(span->first);
  return allocation.contains(first, bytes);
}

bool ReceiverWatch::is_there(const headers::Inbox& inbox, Clock::time_point now) noexcept {
  constexpr std::chrono::milliseconds between_looks{100};
  if (now - looked_ < between_looks) return true;
  looked_ = now;
  return !fabric::registry::is_gone(inbox.speaker().process);
}

}  // namespace gapless::transfer::pulls
