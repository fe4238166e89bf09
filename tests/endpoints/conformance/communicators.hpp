// Groups, and communicators made from others, which must be the same for processes and endpoints. Each adds what it
// found to a trace.
#pragma once

#include "conformance/calls.hpp"

namespace gapless::test {

/// A communicator works: who is where, and messages and collectives in it.
inline void note_communicator(MPI_Comm comm, Trace& trace) {
  if (comm == MPI_COMM_NULL) return note(trace, {-1});
  const int me = rank(comm), all = size(comm);
  int sum = 0, from_left = -1;
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % all, 7, &from_left, 1, MPI_INT, (me + all - 1) % all, 7, comm,
               MPI_STATUS_IGNORE);
  note(trace, {me, all, sum, from_left});
}

inline void communicators(MPI_Comm comm, Trace& trace) {
  MPI_Comm copy, node, none;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm_dup_with_info(comm, info, &copy);
  MPI_Info_free(&info);
  MPI_Comm_split_type(copy, MPI_COMM_TYPE_SHARED, -rank(copy), MPI_INFO_NULL, &node);
  int sum = 0, me = rank(comm);
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, node);
  note(trace, {rank(copy), size(copy), rank(node), size(node), sum});
  MPI_Comm_split_type(copy, me == 0 ? int{MPI_COMM_TYPE_SHARED} : int{MPI_UNDEFINED}, 0, MPI_INFO_NULL, &none);
  note(trace, {none == MPI_COMM_NULL});
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
  MPI_Comm_disconnect(&node);
  note(trace, {node == MPI_COMM_NULL});
  MPI_Comm_free(&copy);
}

inline void note_group(MPI_Group group, MPI_Group all, Trace& trace) {
  int size = -1, rank = -1, compared = -1;
  MPI_Group_size(group, &size);
  MPI_Group_rank(group, &rank);
  MPI_Group_compare(group, all, &compared);
  std::vector<int> ranks(static_cast<std::size_t>(size)), translated(ranks.size(), -1);
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group_translate_ranks(group, size, ranks.data(), all, translated.data());
  note(trace, {size, rank == MPI_UNDEFINED ? -1 : rank, compared == MPI_IDENT, compared == MPI_SIMILAR});
  note(trace, translated);
}

/// Groups of some ranks, and what two of them have in common or not.
inline void groups(MPI_Comm comm, Trace& trace) {
  const int all = size(comm);
  MPI_Group everyone;
  std::array<MPI_Group, 9> made;
  MPI_Comm_group(comm, &everyone);
  std::vector<int> backwards(static_cast<std::size_t>(all));
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  int evens[1][3] = {{0, all - 1, 2}}, down[1][3] = {{all - 1, 0, -2}};
  const int last = all - 1;
  MPI_Group_incl(everyone, all, backwards.data(), &made[0]);
  MPI_Group_excl(everyone, 1, &last, &made[1]);
  MPI_Group_range_incl(everyone, 1, evens, &made[2]);
  MPI_Group_range_excl(everyone, 1, evens, &made[3]);
  MPI_Group_range_incl(everyone, 1, down, &made[4]);
  MPI_Group_union(made[2], made[0], &made[5]);
  MPI_Group_intersection(made[0], made[2], &made[6]);
  MPI_Group_difference(made[0], made[2], &made[7]);
  MPI_Group_difference(made[2], everyone, &made[8]);
  note(trace, {made[8] == MPI_GROUP_EMPTY});
  for (const MPI_Group group : made) note_group(group, everyone, trace);
  int compared = -1;
  MPI_Group_compare(made[8], MPI_GROUP_EMPTY, &compared);
  note(trace, {compared == MPI_IDENT});
  for (MPI_Group& group : made) {
    if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
  }
  MPI_Group_free(&everyone);
  note(trace, {everyone == MPI_GROUP_NULL});
}

/// Communicators of the members of groups: of all ranks at once, and of the members alone.
inline void communicators_of_groups(MPI_Comm comm, Trace& trace) {
  const int me = rank(comm), all = size(comm);
  MPI_Group everyone, half, others;
  MPI_Comm_group(comm, &everyone);
  int down[1][3] = {{all - 1, 0, -2}};
  MPI_Group_range_incl(everyone, 1, down, &half);
  MPI_Group_difference(everyone, half, &others);
  const bool in_half = (all - 1 - me) % 2 == 0;
  MPI_Comm made;
  MPI_Comm_create(comm, half, &made);
  note_communicator(made, trace);
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
  MPI_Comm_create(comm, in_half ? half : others, &made);
  note_communicator(made, trace);
  MPI_Comm_free(&made);
  for (int round = 0; round < 3; ++round) {
    MPI_Comm_create_group(comm, in_half ? half : others, 5, &made);
    note_communicator(made, trace);
    MPI_Group again;
    int compared = -1;
    MPI_Comm_group(made, &again);
    MPI_Group_compare(again, in_half ? half : others, &compared);
    note(trace, {compared == MPI_IDENT});
    MPI_Group_free(&again);
    MPI_Comm_free(&made);
  }
  for (MPI_Group* group : {&everyone, &half, &others}) {
    if (*group != MPI_GROUP_EMPTY) MPI_Group_free(group);
  }
}

/// Duplicates that are made while messages and collectives go on.
inline void duplicates_under_way(MPI_Comm comm, Trace& trace) {
  const int me = rank(comm);
  std::array<MPI_Comm, 2> copies;
  std::array<MPI_Request, 3> requests;
  int sum = 0, total = 0;
  MPI_Comm_idup(comm, &copies[0], &requests[0]);
  MPI_Iallreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
  MPI_Comm_idup(comm, &copies[1], &requests[2]);
  MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, comm);
  note_communicator(comm, trace);
  if (me % 2 == 0) {
    for (MPI_Request& request : requests) {
      for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
  } else {
    MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
  }
  note(trace, {sum, total});
  for (MPI_Comm& copy : copies) {
    note_communicator(copy, trace);
    int compared = -1;
    MPI_Comm_compare(comm, copy, &compared);
    note(trace, {compared == MPI_CONGRUENT});
    MPI_Comm_free(&copy);
  }
}

}  // namespace gapless::test
