// The collectives of endpoints as schedules of messages: trees and rings of plain kind, one list of steps for the
// blocking, nonblocking and persistent forms. Endpoints of one process copy from buffer to buffer.
//
// Reductions combine neighbouring ranges of ranks only, so operations that do not commute get their order.
//
// On an intercommunicator (MPI 5.0, 6.2.2) each group gets what the other one has. Parts of single ranks go directly
// from rank to rank. What a whole group gives or gets passes through the leaders, rank 0 of each group, and through the
// same trees within the group. Nothing can be in place there.
#pragma once

#include <functional>

#include "endpoints/tasks/schedule.hpp"
#include "mpi/calls/user_buffer.hpp"

namespace gapless::mpi::endpoints::plans {

/// The buffer for, or from, one peer.
using DataOf = std::function<Data(int)>;

/// Elements of a datatype somewhere in an array of them.
struct Array {
  const void* memory;
  MPI_Datatype datatype;
  MPI_Count extent = 0;

  Array(const void* start, MPI_Datatype type) noexcept;
  Data part(MPI_Count first, MPI_Count count) const noexcept;
};

// What the program's argument `root` says of this rank: on an intercommunicator MPI_ROOT at the root, MPI_PROC_NULL at
// the others of its group, and the root's rank in the other group.
bool is_root(const Schedule& schedule, int root) noexcept;
/// The rank gives something to the root or gets something from it.
bool has_part(const Schedule& schedule, int root) noexcept;

void barrier(Schedule& schedule);
void broadcast(Schedule& schedule, const Data& data, int root);
void gather(Schedule& schedule, const Data& mine, bool in_place, int root, const DataOf& in);
void scatter(Schedule& schedule, const DataOf& out, bool in_place, int root, const Data& mine);
/// Every rank sends `out(peer)` to each peer and receives `in(peer)` from each; in place, not to and from itself.
void exchange(Schedule& schedule, const DataOf& out, const DataOf& in, bool in_place);
/// What is received takes the place of what is sent.
void exchange_in_place(Schedule& schedule, const DataOf& in);

/// Is the operation one that the library has from the start?
bool is_built_in(MPI_Op op) noexcept;
/// Is the operation defined for the datatype? An error code, the same on every rank. The program's own are for any.
int check_operation(MPI_Op op, MPI_Datatype datatype) noexcept;

struct Reduction {
  const void* operand;
  void* result;
  MPI_Count count;
  MPI_Datatype datatype;
  MPI_Op op;
};

/// The program's buffers as a plan takes them, with datatypes that live as long as the schedule. A buffer whose
/// argument is not `used` at this rank is not looked at.
struct OwnedBy {
  Schedule& schedule;

  Data data(const void* memory, MPI_Count count, MPI_Datatype type, bool used = true) const {
    return {memory, count, !used || memory == MPI_IN_PLACE ? type : schedule.own(type)};
  }
  /// `each` elements for each peer.
  DataOf regular(const void* memory, MPI_Count each, MPI_Datatype type, bool used = true) const {
    if (!used) return {};
    const Array all(memory, schedule.own(type));
    return [all, each](int peer) { return all.part(each * peer, each); };
  }
  template <class Count, class Place>
  DataOf irregular(const void* memory, const Count* counts, const Place* places, MPI_Datatype type,
                   bool used = true) const {
    if (!used) return {};
    const Array all(memory, schedule.own(type));
    return [all, counts, places](int peer) { return all.part(places[peer], counts[peer]); };
  }
  template <class Count, class Place>
  DataOf each_of_its_type(const void* memory, const Count* counts, const Place* places, const MPI_Datatype* types,
                          bool used = true) const {
    if (!used) return {};
    Schedule* const owner = &schedule;
    return [=](int peer) {
      if (counts[peer] == 0) return Data{nullptr, 0, MPI_BYTE};  // nothing has any datatype
      return Data{address_of(memory, static_cast<std::intptr_t>(places[peer])), counts[peer], owner->own(types[peer])};
    };
  }
  Reduction reduction(const void* operand, void* result, MPI_Count count, MPI_Datatype type, MPI_Op op,
                      bool used = true) const {
    return {operand, result, count, used ? schedule.own(type) : type, op};
  }
};

void reduce(Schedule& schedule, const Reduction& reduction, int root);
void reduce_to_all(Schedule& schedule, const Reduction& reduction);
/// `counts(rank)`: how many elements of the result each rank gets, into `reduction.result`.
void reduce_and_scatter(Schedule& schedule, const Reduction& reduction, const std::function<MPI_Count(int)>& counts);
/// Prefix reductions. `inclusive`: MPI_Scan, else MPI_Exscan.
void scan(Schedule& schedule, const Reduction& reduction, bool inclusive);

}  // namespace gapless::mpi::endpoints::plans
