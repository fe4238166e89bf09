// Counters are relaxed atomics: they are read for reports, never to decide.
#include "transfer/report/statistics.hpp"

#include "base/settings.hpp"

namespace gapless::transfer {
namespace {

struct alignas(64) Counter {
  std::atomic<std::uint64_t> messages{0};
  std::atomic<std::uint64_t> bytes{0};
};
constinit std::array<Counter, scheme_count> counters;
constinit std::atomic<std::uint64_t> analyses{0};
constinit std::array<std::atomic<std::uint64_t>, 6> endpoint_messages;
constexpr std::array<const char*, 6> endpoint_ways{
    "copied", "lent", "attached", "in outboxes", "by the library", "of the attached ones copied by both processes"};
constinit std::atomic<std::uint64_t> requests_left{0}, buffers_left{0}, registrations_left{0};

std::string counted(std::uint64_t number, const char* what) {
  return std::to_string(number) + ' ' + what + (number == 1 ? "" : "s");
}

}  // namespace

bool statistics_wanted() noexcept { return settings().statistics; }

void record(Scheme scheme, std::size_t bytes) noexcept {
  Counter& counter = counters[static_cast<std::size_t>(scheme)];
  counter.messages.fetch_add(1, std::memory_order_relaxed);
  counter.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void take_back(Scheme scheme, std::size_t bytes) noexcept {
  Counter& counter = counters[static_cast<std::size_t>(scheme)];
  counter.messages.fetch_sub(1, std::memory_order_relaxed);
  counter.bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void record_analysis() noexcept { analyses.fetch_add(1, std::memory_order_relaxed); }

void record(const EndpointMessages& messages) noexcept {
  const std::uint64_t numbers[] = {messages.copied,    messages.lent,       messages.attached,
                                   messages.in_outbox, messages.by_library, messages.by_both};
  for (std::size_t i = 0; i < endpoint_messages.size(); ++i)
    endpoint_messages[i].fetch_add(numbers[i], std::memory_order_relaxed);
}

void record_leftovers(const Leftovers& left) noexcept {
  requests_left.store(left.requests, std::memory_order_relaxed);
  buffers_left.store(left.buffers, std::memory_order_relaxed);
  registrations_left.store(left.registrations, std::memory_order_relaxed);
}

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
    if (counts[i].messages == 0) continue;
    if (!text.empty()) text += ", ";
    text += name(static_cast<Scheme>(i));
    text += ' ' + counted(counts[i].messages, "message") + ' ' + std::to_string(counts[i].bytes) + " B";
  }
  if (text.empty()) text = "no messages";
  const char* before = "; endpoints: ";
  for (std::size_t i = 0; i < endpoint_messages.size(); ++i) {
    const std::uint64_t number = endpoint_messages[i].load(std::memory_order_relaxed);
    if (number == 0) continue;
    text += before + counted(number, "message") + ' ' + endpoint_ways[i];
    before = ", ";
  }
  const std::uint64_t requests = requests_left.load(std::memory_order_relaxed);
  const std::uint64_t buffers = buffers_left.load(std::memory_order_relaxed);
  const std::uint64_t registrations = registrations_left.load(std::memory_order_relaxed);
  if (requests + buffers + registrations != 0) {
    text += "; left: " + counted(requests, "request") + ", " + counted(buffers, "buffer") + ", " +
            counted(registrations, "registration");
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

extern "C" void gapless_endpoint_statistics(std::uint64_t* messages) {
  for (const auto& number : gapless::transfer::endpoint_messages) *messages++ = number.load(std::memory_order_relaxed);
}

extern "C" void gapless_transfer_leftovers(std::uint64_t* requests, std::uint64_t* buffers,
                                           std::uint64_t* registrations) {
  *requests = gapless::transfer::requests_left.load(std::memory_order_relaxed);
  *buffers = gapless::transfer::buffers_left.load(std::memory_order_relaxed);
  *registrations = gapless::transfer::registrations_left.load(std::memory_order_relaxed);
}
