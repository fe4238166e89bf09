#include "mpi/calls/by_messages/parts.hpp"

#include <numeric>

namespace gapless::mpi::by_messages {
namespace {

using table::RoleKind;

Part whole(const MemoryArgument& argument) noexcept { return {argument.memory, argument.counts[0], argument.datatype}; }
Part nothing() noexcept { return {nullptr, 0, MPI_BYTE}; }

/// The root's side of a call.
void list_side_of_root(const CallFacts& call, const MemoryArgument& argument, std::size_t peers,
                       std::vector<Part>& parts) {
  if (!call.is_at_root()) return parts.assign(peers, nothing());
  if (argument.kind == RoleKind::broadcast) return parts.assign(peers, whole(argument));
  list_parts_by_peer(call, argument, parts);
}
/// What the root has for this rank, or this rank for the root.
void list_part_with_root(const CallFacts& call, const MemoryArgument& argument, std::size_t peers,
                         std::vector<Part>& parts) {
  parts.assign(peers, nothing());
  parts[static_cast<std::size_t>(call.root)] = whole(argument);
}

}  // namespace

Sides sides_of(const CallFacts& call, const MemoryArgument& first, const MemoryArgument& last) noexcept {
  Sides sides{first, last};
  const bool is_at_root = call.has_root && call.is_at_root();
  for (MemoryArgument* each : {&sides.out, &sides.in}) {
    if (!each->only_at_root || is_at_root) continue;
    each->memory = nullptr;
    each->counts = Integers(MPI_Count{0});
    each->datatype = MPI_BYTE;
  }
  const bool may_be_in_place = !call.has_root || is_at_root;
  if (may_be_in_place && sides.has_one_part() && sides.out.is_in_place()) sides.out = own_part_of(call, sides.in);
  if (is_at_root && sides.in.kind == RoleKind::receive && sides.in.is_in_place()) {
    sides.in = own_part_of(call, sides.out);
    sides.in.kind = RoleKind::receive;
  }
  return sides;
}

Neighbors::Ranks peers_of(const CallFacts& call, const Sides& sides) {
  return sides.is_of_neighbors() ? call.neighbors().ranks() : all_ranks_of(call);
}

Neighbors::Ranks all_ranks_of(const CallFacts& call) {
  Neighbors::Ranks all;
  all.sources.resize(static_cast<std::size_t>(count_entries(call.communicator, CountsOf::processes)));
  std::iota(all.sources.begin(), all.sources.end(), 0);
  all.destinations = all.sources;
  return all;
}

void list_sent(const CallFacts& call, const Sides& sides, std::size_t peers, std::vector<Part>& parts) {
  if (!call.has_root && !sides.has_one_part()) return list_parts_by_peer(call, sides.out, parts);
  if (!call.has_root) return parts.assign(peers, whole(sides.out));
  const auto list = sides.has_one_part() ? list_part_with_root : list_side_of_root;
  list(call, sides.out, peers, parts);
}

void list_received(const CallFacts& call, const Sides& sides, std::size_t peers, std::vector<Part>& parts) {
  if (!call.has_root) return list_parts_by_peer(call, sides.in, parts);
  const auto list = sides.has_one_part() ? list_side_of_root : list_part_with_root;
  list(call, sides.in, peers, parts);
}

}  // namespace gapless::mpi::by_messages
