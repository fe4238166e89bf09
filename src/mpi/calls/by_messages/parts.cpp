#include "mpi/calls/by_messages/parts.hpp"

#include <numeric>

namespace gapless::mpi::by_messages {
namespace {

using table::RoleKind;

Part whole(const MemoryArgument& argument) noexcept { return {argument.memory, argument.counts[0], argument.datatype}; }
Part nothing() noexcept { return {nullptr, 0, MPI_BYTE}; }

/// The root's side of a call.
void list_for_each(const CallFacts& call, const MemoryArgument& argument, std::size_t peers, std::vector<Part>& parts) {
  if (!call.is_at_root()) return parts.assign(peers, nothing());
  if (argument.kind == RoleKind::broadcast) return parts.assign(peers, whole(argument));
  list_parts_by_peer(call, argument, parts);
}
/// What the root has for this rank, or this rank for the root.
void list_of_root(const CallFacts& call, const MemoryArgument& argument, std::size_t peers, std::vector<Part>& parts) {
  parts.assign(peers, nothing());
  parts[static_cast<std::size_t>(call.root)] = whole(argument);
}

}  // namespace

Memory memory_of(const CallFacts& call, const MemoryArgument& first, const MemoryArgument& last) noexcept {
  Memory memory{first, last};
  const bool is_at_root = call.has_root && call.is_at_root();
  for (MemoryArgument* each : {&memory.out, &memory.in}) {
    if (!each->only_at_root || is_at_root) continue;
    each->memory = nullptr;
    each->counts = Integers(MPI_Count{0});
    each->datatype = MPI_BYTE;
  }
  const bool may_be_in_place = !call.has_root || is_at_root;
  if (may_be_in_place && memory.has_one_part() && memory.out.is_in_place()) memory.out = own_part_of(call, memory.in);
  if (is_at_root && memory.in.kind == RoleKind::receive && memory.in.is_in_place()) {
    memory.in = own_part_of(call, memory.out);
    memory.in.kind = RoleKind::receive;
  }
  return memory;
}

Neighbors::Ranks peers_of(const CallFacts& call, const Memory& memory) {
  if (memory.is_of_neighbors()) return call.neighbors().ranks();
  Neighbors::Ranks all;
  all.sources.resize(peers_in(call, memory.in.kind));
  std::iota(all.sources.begin(), all.sources.end(), 0);
  all.destinations = all.sources;
  return all;
}

void list_sent(const CallFacts& call, const Memory& memory, std::size_t peers, std::vector<Part>& parts) {
  if (memory.has_one_part() && !call.has_root) return parts.assign(peers, whole(memory.out));
  if (memory.has_one_part()) return list_of_root(call, memory.out, peers, parts);
  call.has_root ? list_for_each(call, memory.out, peers, parts) : list_parts_by_peer(call, memory.out, parts);
}

void list_received(const CallFacts& call, const Memory& memory, std::size_t peers, std::vector<Part>& parts) {
  if (!call.has_root) return list_parts_by_peer(call, memory.in, parts);
  memory.has_one_part() ? list_for_each(call, memory.in, peers, parts) : list_of_root(call, memory.in, peers, parts);
}

}  // namespace gapless::mpi::by_messages
