#include "transfer/headers/decide.hpp"

#include <array>

namespace gapless::transfer::headers {
namespace {

/// The first way that both sides can go is taken.
constexpr std::array by_preference = {WayKind::pulled, WayKind::exported, WayKind::fabric, WayKind::slots};
static_assert(by_preference.size() + 1 == way_count);

/// Does the processor of the receive's memory, a GPU or the CPU, reach the bytes that are offered that way?
constexpr bool is_reached(WayKind way, const SenderFacts& sender, const ReceiverFacts& receiver) noexcept {
  const bool is_of_gpu = way == WayKind::exported || way == WayKind::pulled;
  return receiver.is_on_gpu == is_of_gpu || (way == WayKind::exported && sender.is_exported_on_host);
}

}  // namespace

Decision decide(const SenderFacts& sender, const ReceiverFacts& receiver) noexcept {
  Decision decision;
  if (sender.bytes > receiver.room) {
    decision.outcome = Outcome::truncated;
    return decision;
  }
  for (const WayKind way : by_preference) {
    if (!sender.ways.has(way) || !receiver.ways.has(way)) continue;
    decision.outcome = receiver.whole == sender.bytes ? Outcome::whole : Outcome::partial;
    decision.way = way;
    decision.bytes = receiver.whole;
    decision.goes_by_packed_memory = !is_reached(way, sender, receiver);
    return decision;
  }
  return decision;
}

}  // namespace gapless::transfer::headers
