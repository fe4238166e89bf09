#include "transfer/headers/fetch.hpp"

#include <cstddef>

#include "transfer/schemes/slots.hpp"

namespace gapless::transfer::headers {

using schemes::SlotsWay;

WaySet ways_of_receiver() noexcept { return {WayKind::slots}; }

SenderFacts facts_of(const Header& header) noexcept { return {header.bytes(), header.ways()}; }

void Fetch::release_others(const Header& header, WayKind taken) noexcept {
  std::byte* const nowhere = nullptr;
  if (taken != WayKind::slots) {
    if (const auto way = header.way<SlotsWay>()) static_cast<void>(fetch_from_slots(header, *way, nowhere, 0));
  }
}

Result Fetch::begin(const Header& header, const Decision& decision, const Buffer& into, Operation* packed,
                    Batch& batch) noexcept {
  release_others(header, decision.way);
  if (decision.outcome == Outcome::truncated) return Result::ok;
  Result result = Result::peer_failed;
  if (decision.goes_by_packed_memory && packed == nullptr) return result;
  switch (decision.way) {
    case WayKind::slots:
      if (const auto way = header.way<SlotsWay>()) {
        result = decision.goes_by_packed_memory ? fetch_from_slots(header, *way, packed->packed_data(), decision.bytes)
                                                : fetch_from_slots(header, *way, into, decision.bytes);
      }
      break;
    case WayKind::none:
      break;
  }
  if (decision.goes_by_packed_memory) packed->finish_in(batch, result == Result::ok ? decision.bytes : 0);
  return result;
}

}  // namespace gapless::transfer::headers
