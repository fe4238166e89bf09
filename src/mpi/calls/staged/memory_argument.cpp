#include "mpi/calls/staged/memory_argument.hpp"

#include <algorithm>

#include "mpi/calls/user_buffer.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {

using table::RoleKind;

bool matters_here(const CallFacts& call, const MemoryArgument& argument) noexcept {
  if (argument.is_in_place()) return false;
  if (!call.has_root) return true;
  if (argument.kind == RoleKind::broadcast) return call.root != MPI_PROC_NULL;
  if (argument.only_at_root) return call.is_at_root();
  // In the group of an intercommunicator's root, arguments of processes that are no root mean nothing.
  return call.root != MPI_PROC_NULL && call.root != MPI_ROOT;
}

std::intptr_t extent_of(MPI_Datatype datatype) noexcept {
  MPI_Count lower = 0, extent = 0;
  native.Type_get_extent_x(datatype, &lower, &extent);
  return static_cast<std::intptr_t>(extent);
}

MPI_Count most_external_bytes(const MemoryArgument& argument) noexcept {
  const MPI_Count count = argument.counts[0];
  if (count < 0) return -1;
  const MPI_Count size = runtime::size_of(argument.datatype);
  MPI_Count native = 0, external = 0;
  const bool is_known = size >= 0 && !__builtin_mul_overflow(size, count, &native) &&
                        !__builtin_mul_overflow(native, MPI_Count{2}, &external);
  return is_known ? external : -1;
}

std::size_t peers_in(const CallFacts& call, RoleKind kind) noexcept {
  const bool are_neighbors = is_of_neighbors(kind);
  return static_cast<std::size_t>(are_neighbors ? call.neighbors().count(peers_of(kind))
                                                : count_entries(call.communicator, peers_of(kind)));
}

namespace {

bool is_for_each(RoleKind kind) noexcept {
  return kind == RoleKind::send_to_all || kind == RoleKind::receive_from_all || kind == RoleKind::operand_of_all ||
         kind == RoleKind::send_to_neighbors || kind == RoleKind::receive_from_neighbors;
}

/// 0 for no datatype, of which the library's question would have an error handler of the program run.
std::intptr_t extent_if_usable(MPI_Datatype datatype) noexcept {
  return runtime::is_usable(datatype) ? extent_of(datatype) : 0;
}

/// Part `k` of memory of one datatype with a part for each peer.
Part part_for(const MemoryArgument& argument, std::size_t k, std::intptr_t extent) noexcept {
  const bool has_places = has_displacements(argument.kind);
  const MPI_Count place = has_places ? argument.displacements[k] : argument.counts[k] * static_cast<MPI_Count>(k);
  return {address_of(argument.memory, static_cast<std::intptr_t>(place) * extent), argument.counts[k],
          argument.datatype};
}

/// Memory of one datatype with a part for each peer.
template <class Visit>
void visit_parts_for_each(const MemoryArgument& argument, std::size_t peers, Visit visit) {
  const std::intptr_t extent = extent_if_usable(argument.datatype);
  for (std::size_t k = 0; k < peers; ++k) visit(part_for(argument, k, extent));
}

template <class Visit>
void visit_parts_of_datatypes(const MemoryArgument& argument, std::size_t peers, Visit visit) {
  for (std::size_t k = 0; k < peers; ++k) {
    visit(Part{address_of(argument.memory, static_cast<std::intptr_t>(argument.displacements[k])), argument.counts[k],
               argument.datatypes[k]});
  }
}

MPI_Count sum_of(const Integers& counts, std::size_t entries) noexcept {
  MPI_Count sum = 0;
  for (std::size_t k = 0; k < entries; ++k) sum += counts[k];
  return sum;
}

template <class Visit>
void visit_parts(const CallFacts& call, const MemoryArgument& argument, Visit visit) {
  const RoleKind kind = argument.kind;
  if (kind == RoleKind::operand_of_all_v || (kind == RoleKind::result_v && argument.holds_operand))
    return visit(Part{argument.memory, sum_of(argument.counts, peers_in(call, kind)), argument.datatype});
  if (kind == RoleKind::result_v) {
    int rank = 0;
    native.Comm_rank(call.communicator, &rank);
    return visit(Part{argument.memory, argument.counts[static_cast<std::size_t>(rank)], argument.datatype});
  }
  const bool one_datatype = !has_datatypes(kind);
  if (one_datatype && !has_displacements(kind) && !is_of_neighbors(kind)) {
    const bool has_shares = is_for_each(kind) || argument.holds_operand;
    const MPI_Count shares = has_shares ? static_cast<MPI_Count>(peers_in(call, kind)) : 1;
    return visit(Part{argument.memory, argument.counts[0] * shares, argument.datatype});
  }
  one_datatype ? visit_parts_for_each(argument, peers_in(call, kind), visit)
               : visit_parts_of_datatypes(argument, peers_in(call, kind), visit);
}

}  // namespace

void list_parts(const CallFacts& call, const MemoryArgument& argument, std::vector<Part>& parts) {
  parts.clear();
  visit_parts(call, argument, [&parts](const Part& part) { parts.push_back(part); });
  for (std::size_t k = 0; is_of_neighbors(argument.kind) && k < parts.size(); ++k) {
    parts[k].is_missing = call.neighbors().is_missing(static_cast<int>(k));
  }
}

void list_parts_by_peer(const CallFacts& call, const MemoryArgument& argument, std::vector<Part>& parts) {
  if (!is_for_each(argument.kind) || is_of_neighbors(argument.kind)) return list_parts(call, argument, parts);
  parts.clear();
  visit_parts_for_each(argument, peers_in(call, argument.kind), [&parts](const Part& part) { parts.push_back(part); });
}

MemoryArgument own_part_of(const CallFacts& call, const MemoryArgument& argument) noexcept {
  const auto own = static_cast<std::size_t>(own_rank(call.communicator));
  MemoryArgument part;
  part.kind = RoleKind::send;
  part.datatype = argument.datatype;
  if (own >= peers_in(call, argument.kind)) return part;  // a mistake: between two groups nobody is in place
  const Part mine = part_for(argument, own, extent_if_usable(argument.datatype));
  part.counts = Integers(mine.count);
  part.memory = mine.memory;
  return part;
}

AddressRange addresses_of(const CallFacts& call, const MemoryArgument& argument) noexcept {
  AddressRange range;
  visit_parts(call, argument, [&range](const Part& part) {
    if (part.count <= 0 || !runtime::is_usable(part.datatype)) return;
    MPI_Count lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    native.Type_get_extent_x(part.datatype, &lower, &extent);
    native.Type_get_true_extent_x(part.datatype, &true_lower, &true_extent);
    if (true_extent <= 0) return;
    const auto address = reinterpret_cast<std::intptr_t>(part.memory);
    const MPI_Count last = extent * (part.count - 1);
    const auto begin = address + static_cast<std::intptr_t>(true_lower + std::min<MPI_Count>(last, 0));
    const auto end = address + static_cast<std::intptr_t>(true_lower + true_extent + std::max<MPI_Count>(last, 0));
    const bool is_first = range.begin == range.end;
    range.begin = is_first ? begin : std::min(range.begin, begin);
    range.end = is_first ? end : std::max(range.end, end);
    range.is_gpu_memory |= is_gpu_memory(address_of(part.memory, static_cast<std::intptr_t>(true_lower)));
  });
  return range;
}

}  // namespace gapless::mpi
