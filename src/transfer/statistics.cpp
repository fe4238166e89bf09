// Counters are relaxed atomics: they are read for reports, never to decide.
#include "transfer/statistics.hpp"

#include "base/settings.hpp"

namespace gapless::transfer {
namespace {

struct alignas(64) Counter {
  std::atomic<std::uint64_t> messages{0};
  std::atomic<std::uint64_t> bytes{0};
};
constinit std::array<Counter, scheme_count> counters;
constinit std::atomic<std::uint64_t> analyses{0};

}  // namespace

bool statistics_wanted() noexcept { return settings().statistics; }

void record(Scheme scheme, std::size_t bytes) noexcept {
  Counter& counter = counters[static_cast<std::size_t>(scheme)];
  counter.messages.fetch_add(1, std::memory_order_relaxed);
  counter.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void record_analysis() noexcept { analyses.fetch_add(1, std::memory_order_relaxed); }

std::array<Count, scheme_count> statistics() noexcept {
  std::array<Count, scheme_count> result;
  for (std::size_t i = 0; i < scheme_count; ++i) {
    result[i].messages = counters[i].messages.load(std::memory_order_relaxed);
    result[i].bytes = counters[i].bytes.load(std::memory_order_relaxed);
  }
  return result;
}

std::string summary() {
  std::string text;
  const auto counts = statistics();
  for (std::size_t i = 0; i < scheme_count; ++i) {
    if (!text.empty()) text += ", ";
    text += name(static_cast<Scheme>(i));
    text += ' ' + std::to_string(counts[i].messages) + (counts[i].messages == 1 ? " message " : " messages ");
    text += std::to_string(counts[i].bytes) + " B";
  }
  return text;
}

}  // namespace gapless::transfer

extern "C" void gapless_transfer_statistics(std::uint64_t* messages, std::uint64_t* bytes) {
  const auto counts = gapless::transfer::statistics();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    messages[i] = counts[i].messages;
    bytes[i] = counts[i].bytes;
  }
}

extern "C" std::uint64_t gapless_transfer_analyses() {
  return gapless::transfer::analyses.load(std::memory_order_relaxed);
}
