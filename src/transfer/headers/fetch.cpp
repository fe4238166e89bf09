#include "transfer/headers/fetch.hpp"

#include <cstddef>

#include "transfer/headers/exported/introductions.hpp"
#include "transfer/schemes/slots.hpp"

namespace gapless::transfer::headers {

using pulls::PulledWay;
using rdma::FabricWay;
using schemes::ExportedWay;
using schemes::SlotsWay;

WaySet ways_of_receiver() noexcept {
  WaySet ways{WayKind::slots};
  if (accepting_device() >= 0 || has_accepted_pages()) ways.add(WayKind::exported);
  if (accepting_device() >= 0) ways.add(WayKind::pulled);
  if (rdma::fabric_kind() != 0) ways.add(WayKind::fabric);
  return ways;
}

SenderFacts facts_of(const Header& header) noexcept {
  const auto way = header.way<ExportedWay>();
  return {header.bytes(), header.ways(), way && way->memory.is_on_host()};
}

void Fetch::release_others(const Header& header, WayKind taken) noexcept {
  const WaySet offered = header.ways();
  const auto is_left = [&](WayKind kind) { return kind != taken && offered.has(kind); };
  if (is_left(WayKind::slots)) {
    std::byte* const nowhere = nullptr;
    if (const auto way = header.way<SlotsWay>()) static_cast<void>(fetch_from_slots(header, *way, nowhere, 0));
  }
  if (is_left(WayKind::exported)) {
    if (const auto way = header.way<ExportedWay>()) schemes::release_exported(*way);
  }
  if (is_left(WayKind::pulled)) {
    if (const auto way = header.way<PulledWay>()) pulls::release_pulled(header, *way);
  }
  if (is_left(WayKind::fabric)) {
    if (const auto way = header.way<FabricWay>()) rdma::refuse_by_fabric(*way);
  }
}

Result Fetch::move(const Header& header, const Decision& decision, const Buffer& into, std::byte* landing,
                   Batch& batch) noexcept {
  const bool by_packed = decision.goes_by_packed_memory;
  const auto bytes = static_cast<std::size_t>(decision.bytes);
  switch (decision.way) {
    case WayKind::slots:
      if (const auto way = header.way<SlotsWay>())
        return by_packed ? fetch_from_slots(header, *way, landing, bytes) : fetch_from_slots(header, *way, into, bytes);
      break;
    case WayKind::exported:
      if (const auto way = header.way<ExportedWay>())
        return by_packed ? direct_.copy(header, *way, landing, bytes) : direct_.begin(header, *way, into, bytes, batch);
      break;
    case WayKind::pulled:
      if (const auto way = header.way<PulledWay>())
        return by_packed ? pull_.copy(header, *way, landing, bytes) : pull_.begin(header, *way, into, bytes, batch);
      break;
    case WayKind::fabric:
      if (const auto way = header.way<FabricWay>()) {
        // A fabric moves all bytes of the message, also those of a last element that is not whole.
        if (way->offer.blocks.bytes != header.bytes()) break;
        if (!by_packed) return rdma::fetch_by_fabric(*way, into);
        const Result result = fabric_.begin(*way, into, bytes, batch);
        return fabric_.is_there() ? result : rdma::fetch_by_fabric(*way, landing);
      }
      break;
    case WayKind::none:
      break;
  }
  return Result::peer_failed;
}

Result Fetch::begin(const Header& header, const Decision& decision, const Buffer& into, std::byte* landing,
                    Operation* packed, Batch& batch) noexcept {
  release_others(header, decision.way);
  if (decision.outcome == Outcome::truncated) return Result::ok;
  const Result result = move(header, decision, into, landing, batch);
  if (decision.goes_by_packed_memory && packed != nullptr && !fabric_.is_there()) {
    packed->finish_in(batch, result == Result::ok ? static_cast<std::size_t>(decision.bytes) : 0);
  }
  return result;
}

}  // namespace gapless::transfer::headers
