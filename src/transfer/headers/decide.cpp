#include "transfer/headers/decide.hpp"

#include <array>

namespace gapless::transfer::headers {
namespace {

/// The first that both sides can go is taken.
constexpr std::array by_preference = {WayKind::pulled, WayKind::exported, WayKind::fabric, WayKind::slots};
static_assert(by_preference.size() + 1 == way_count);

/// Is what is offered in memory that the CPU reaches, and no GPU?
constexpr bool is_on_host(WayKind way) noexcept { return way != WayKind::exported && way != WayKind::pulled; }

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
    decision.goes_by_packed_memory = receiver.is_on_gpu == is_on_host(way);
    return decision;
  }
  return decision;
}

}  // namespace gapless::transfer::headers
