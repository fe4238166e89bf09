#include "mpi/calls/staged/memory_argument.hpp"

#include "mpi/calls/user_buffer.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {

using table::Kind;

bool matters_here(const CallFacts& call, const MemoryArgument& argument) noexcept {
  if (argument.is_in_place()) return false;
  if (!call.has_root) return true;
  if (argument.kind == Kind::broadcast) return call.root != MPI_PROC_NULL;
  if (argument.only_at_root) return call.is_at_root();
  // In the group of an intercommunicator's root, what the others of a group give or get means nothing.
  return call.root != MPI_PROC_NULL && call.root != MPI_ROOT;
}

namespace {

bool is_of_neighbors(Kind kind) noexcept {
  return peers_of(kind) == CountsOf::sources || peers_of(kind) == CountsOf::destinations;
}

bool is_for_each(Kind kind) noexcept {
  return kind == Kind::send_to_all || kind == Kind::receive_from_all || kind == Kind::operand_of_all ||
         kind == Kind::send_to_neighbors || kind == Kind::receive_from_neighbors;
}

std::intptr_t extent_of(MPI_Datatype datatype) noexcept {
  MPI_Count lower = 0, extent = 0;
  native.Type_get_extent_x(datatype, &lower, &extent);
  return static_cast<std::intptr_t>(extent);
}

// Memory of one datatype with a part for each peer.
std::vector<Part> parts_for_each(const MemoryArgument& argument, std::size_t peers) {
  const std::intptr_t extent = extent_of(argument.datatype);
  const bool has_places = has_displacements(argument.kind);
  std::vector<Part> parts;
  parts.reserve(peers);
  for (std::size_t k = 0; k < peers; ++k) {
    const MPI_Count place = has_places ? argument.displacements[k] : argument.counts[k] * static_cast<MPI_Count>(k);
    parts.push_back({address_of(argument.memory, static_cast<std::intptr_t>(place) * extent), argument.counts[k],
                     argument.datatype});
  }
  return parts;
}

std::vector<Part> parts_of_datatypes(const MemoryArgument& argument, std::size_t peers) {
  std::vector<Part> parts;
  parts.reserve(peers);
  for (std::size_t k = 0; k < peers; ++k) {
    parts.push_back({address_of(argument.memory, static_cast<std::intptr_t>(argument.displacements[k])),
                     argument.counts[k], argument.datatypes[k]});
  }
  return parts;
}

MPI_Count sum_of(const Integers& counts, std::size_t entries) noexcept {
  MPI_Count sum = 0;
  for (std::size_t k = 0; k < entries; ++k) sum += counts[k];
  return sum;
}

}  // namespace

std::vector<Part> parts_of(const CallFacts& call, const MemoryArgument& argument) {
  const Kind kind = argument.kind;
  const bool of_neighbors = is_of_neighbors(kind);
  const auto peers = [&] { return static_cast<std::size_t>(count_entries(call.communicator, peers_of(kind))); };
  if (kind == Kind::operand_of_all_v) return {{argument.memory, sum_of(argument.counts, peers()), argument.datatype}};
  if (kind == Kind::result_v) {
    int rank = 0;
    native.Comm_rank(call.communicator, &rank);
    return {{argument.memory, argument.counts[static_cast<std::size_t>(rank)], argument.datatype}};
  }
  const bool one_datatype = !has_datatypes(kind);
  if (one_datatype && !has_displacements(kind) && !of_neighbors) {
    const MPI_Count shares = is_for_each(kind) ? static_cast<MPI_Count>(peers()) : 1;
    return {{argument.memory, argument.counts[0] * shares, argument.datatype}};
  }
  std::vector<Part> parts = one_datatype ? parts_for_each(argument, peers()) : parts_of_datatypes(argument, peers());
  for (std::size_t k = 0; of_neighbors && k < parts.size(); ++k) {
    parts[k].is_missing = is_neighbor_missing(call.communicator, static_cast<int>(k));
  }
  return parts;
}

}  // namespace gapless::mpi
