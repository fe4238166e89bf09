// Intercommunicators of two parts of a communicator, of processes or of endpoints. Who is where and what comes from
// whom is told by arithmetic of ranks.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "support/environment.hpp"

namespace gapless::test {

/// Ranks of the whole, in two parts: every other one, or those below and above the middle.
struct Parts {
  int all;
  bool alternate;

  int side_of(int rank) const { return alternate ? rank % 2 : rank >= (all + 1) / 2; }
  std::vector<int> of(int side) const {
    std::vector<int> members;
    for (int rank = 0; rank < all; ++rank) {
      if (side_of(rank) == side) members.push_back(rank);
    }
    return members;
  }
};

inline int place_in(const std::vector<int>& members, int rank) {
  return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
}

/// A group, which it frees, has these ranks of the whole.
inline int wrong_in_group(MPI_Group group, MPI_Comm whole, const std::vector<int>& members) {
  MPI_Group everyone;
  MPI_Comm_group(whole, &everyone);
  int size = -1;
  MPI_Group_size(group, &size);
  int wrong = size != static_cast<int>(members.size());
  std::vector<int> ranks(members.size()), translated(members.size(), -1);
  std::iota(ranks.begin(), ranks.end(), 0);
  if (wrong == 0) MPI_Group_translate_ranks(group, size, ranks.data(), everyone, translated.data());
  wrong += translated != members;
  MPI_Group_free(&group);
  MPI_Group_free(&everyone);
  return wrong;
}

/// From everyone to everyone of the other part, by name; the same to one each, from anyone; and to the one of the same
/// rank by persistent requests and in one call.
inline int wrong_messages(MPI_Comm inter, int me, const std::vector<int>& here, const std::vector<int>& there) {
  const int mine = place_in(here, me), remote = static_cast<int>(there.size()), local = static_cast<int>(here.size());
  int wrong = 0;
  std::vector<MPI_Request> requests(there.size());
  for (int to = 0; to < remote; ++to)
    MPI_Isend(&me, 1, MPI_INT, to, 10 + mine, inter, &requests[static_cast<std::size_t>(to)]);
  for (int from = remote - 1; from >= 0; --from) {
    int got = -1;
    MPI_Status status;
    MPI_Recv(&got, 1, MPI_INT, from, MPI_ANY_TAG, inter, &status);
    wrong += got != there[static_cast<std::size_t>(from)] || status.MPI_SOURCE != from || status.MPI_TAG != 10 + from;
  }
  MPI_Waitall(remote, requests.data(), MPI_STATUSES_IGNORE);

  // Short ones and long ones.
  const std::vector<int> out(static_cast<std::size_t>(mine % 2 == 0 ? 1 : 5000), me);
  MPI_Issend(out.data(), static_cast<int>(out.size()), MPI_INT, mine % remote, 3, inter, &requests[0]);
  for (int i = 0; i < remote; ++i) {
    if (i % local != mine) continue;
    MPI_Message message;
    MPI_Status probed, status;
    int count = 0;
    MPI_Mprobe(MPI_ANY_SOURCE, 3, inter, &message, &probed);
    MPI_Get_count(&probed, MPI_INT, &count);
    std::vector<int> in(static_cast<std::size_t>(count), -1);
    MPI_Mrecv(in.data(), count, MPI_INT, &message, &status);
    const int from = status.MPI_SOURCE;
    wrong += from != probed.MPI_SOURCE || from % local != mine || count != (from % 2 == 0 ? 1 : 5000);
    wrong += std::count(in.begin(), in.end(), there[static_cast<std::size_t>(from)]) != count;
  }
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

  const int partner = mine < remote ? mine : int{MPI_PROC_NULL};
  const int expected = partner == MPI_PROC_NULL ? -1 : there[static_cast<std::size_t>(partner)];
  std::array<int, 2> got = {-1, -1};
  std::array<MPI_Request, 2> kept;
  MPI_Recv_init(&got[0], 1, MPI_INT, partner, 4, inter, &kept[0]);
  MPI_Send_init(&me, 1, MPI_INT, partner, 4, inter, &kept[1]);
  std::array<MPI_Status, 2> statuses;
  MPI_Startall(2, kept.data());
  MPI_Waitall(2, kept.data(), statuses.data());
  for (MPI_Request& request : kept) MPI_Request_free(&request);
  MPI_Status status;
  MPI_Sendrecv(&me, 1, MPI_INT, partner, 6, &got[1], 1, MPI_INT, partner, 6, inter, &status);
  wrong +=
      got[0] != expected || got[1] != expected || statuses[0].MPI_SOURCE != partner || status.MPI_SOURCE != partner;
  return wrong;
}

/// The two groups are those ranks of the whole, of which the caller is one.
inline int wrong_between(MPI_Comm inter, MPI_Comm whole, const std::vector<int>& here, const std::vector<int>& there) {
  const int me = rank(whole);
  int is_inter = 0, remote = 0, wrong = 0;
  MPI_Group local_group, remote_group;
  MPI_Comm_test_inter(inter, &is_inter);
  MPI_Comm_remote_size(inter, &remote);
  wrong += is_inter != 1 || remote != static_cast<int>(there.size());
  wrong += size(inter) != static_cast<int>(here.size()) || rank(inter) != place_in(here, me);
  MPI_Comm_group(inter, &local_group);
  MPI_Comm_remote_group(inter, &remote_group);
  wrong += wrong_in_group(local_group, whole, here) + wrong_in_group(remote_group, whole, there);
  std::vector<int> heard(there.size(), -1);
  MPI_Allgather(&me, 1, MPI_INT, heard.data(), 1, MPI_INT, inter);
  return wrong + (heard != there) + wrong_messages(inter, me, here, there);
}

inline int wrong_in_intercommunicator(MPI_Comm inter, MPI_Comm whole, const Parts& parts) {
  const int side = parts.side_of(rank(whole));
  return wrong_between(inter, whole, parts.of(side), parts.of(1 - side));
}

/// Frees what has been made of an intercommunicator: one of those ranks, or none.
inline int wrong_in_part(MPI_Comm made, MPI_Comm whole, const std::vector<int>& here, const std::vector<int>& there) {
  if (made == MPI_COMM_NULL || here.empty() || there.empty()) {
    const bool is_right = made == MPI_COMM_NULL && (here.empty() || there.empty());
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
    return is_right ? 0 : 1;
  }
  int wrong = wrong_between(made, whole, here, there);
  MPI_Comm copy;
  MPI_Comm_dup(made, &copy);
  MPI_Comm_free(&made);
  wrong += wrong_between(copy, whole, here, there);
  MPI_Comm_free(&copy);
  return wrong;
}

/// By colour: two that both groups may have, and one that a single rank has; in the order of keys; and one rank that
/// says none.
inline int wrong_in_split(MPI_Comm inter, MPI_Comm whole, const Parts& parts) {
  const int me = rank(whole), side = parts.side_of(me);
  const auto colour = [&](int rank) {
    if (rank == 0 && parts.all > 4) return int{MPI_UNDEFINED};
    return rank == parts.all - 1 && parts.all > 2 ? 7 : rank / 2 % 2;
  };
  const auto of_mine = [&](int of_side) {
    std::vector<int> members = parts.of(of_side);
    std::erase_if(members, [&](int rank) { return colour(me) == MPI_UNDEFINED || colour(rank) != colour(me); });
    std::reverse(members.begin(), members.end());
    return members;
  };
  MPI_Comm made;
  MPI_Comm_split(inter, colour(me), -me, &made);
  return wrong_in_part(made, whole, of_mine(side), of_mine(1 - side));
}

/// All processes of the tests are of one node, so that everyone has the other group there.
inline int wrong_in_split_type(MPI_Comm inter, MPI_Comm whole, const Parts& parts) {
  const int me = rank(whole), side = parts.side_of(me);
  std::vector<int> here = parts.of(side), there = parts.of(1 - side);
  std::reverse(here.begin(), here.end());
  std::reverse(there.begin(), there.end());
  MPI_Comm made;
  MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, -me, MPI_INFO_NULL, &made);
  return wrong_in_part(made, whole, here, there);
}

/// Of every other member of each group, backwards; and of none in one of the groups.
inline int wrong_in_create(MPI_Comm inter, MPI_Comm whole, const Parts& parts) {
  const int me = rank(whole), side = parts.side_of(me);
  int wrong = 0;
  for (const int empty_side : {-1, 0, 1}) {
    const auto chosen = [&](int of_side) {
      std::vector<int> members;
      const std::vector<int> all = parts.of(of_side);
      for (std::size_t k = 0; of_side != empty_side && k < all.size(); k += 2) members.insert(members.begin(), all[k]);
      return members;
    };
    const std::vector<int> here = chosen(side), there = chosen(1 - side);
    std::vector<int> ranks;
    for (const int member : here) ranks.push_back(place_in(parts.of(side), member));
    MPI_Group local, some;
    MPI_Comm_group(inter, &local);
    MPI_Group_incl(local, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Comm made;
    MPI_Comm_create(inter, some, &made);
    const bool is_in = place_in(here, me) < static_cast<int>(here.size());
    wrong += wrong_in_part(made, whole, is_in ? here : std::vector<int>{}, there);
    if (some != MPI_GROUP_EMPTY) MPI_Group_free(&some);
    MPI_Group_free(&local);
  }
  return wrong;
}

/// The part that says `high` comes behind the other.
inline int wrong_in_merged(MPI_Comm inter, MPI_Comm whole, const Parts& parts, int high_side) {
  const int me = rank(whole);
  std::vector<int> order = parts.of(1 - high_side);
  const std::vector<int> behind = parts.of(high_side);
  order.insert(order.end(), behind.begin(), behind.end());
  MPI_Comm merged;
  MPI_Intercomm_merge(inter, parts.side_of(me) == high_side, &merged);
  int sum = 0, is_inter = -1, compared = -1;
  std::vector<int> found(order.size(), -1);
  MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, merged);
  MPI_Allgather(&me, 1, MPI_INT, found.data(), 1, MPI_INT, merged);
  MPI_Comm_test_inter(merged, &is_inter);
  MPI_Comm_compare(merged, inter, &compared);
  const bool is_wrong = found != order || rank(merged) != place_in(order, me) || size(merged) != parts.all ||
                        is_inter != 0 || sum != parts.all * (parts.all - 1) / 2 || compared != MPI_UNEQUAL;
  MPI_Comm_free(&merged);
  return is_wrong;
}

/// How much is wrong with intercommunicators of both kinds of parts, of at least two ranks. MPICH 5.0.2 hangs where
/// four processes split one by type, so `splits_by_type` is for endpoints.
inline int wrong_between_parts(MPI_Comm whole, bool splits_by_type) {
  int wrong = 0;
  for (const bool alternate : {false, true}) {
    const Parts parts{size(whole), alternate};
    const int side = parts.side_of(rank(whole));
    MPI_Comm half, inter, copy;
    MPI_Comm_split(whole, side, 0, &half);
    // The last of the local group leads, and calls the other's last by its rank in the whole.
    MPI_Intercomm_create(half, size(half) - 1, whole, parts.of(1 - side).back(), 5, &inter);
    wrong += wrong_in_intercommunicator(inter, whole, parts);
    MPI_Comm_dup(inter, &copy);
    int compared = -1;
    MPI_Comm_compare(inter, copy, &compared);
    wrong += compared != MPI_CONGRUENT;
    MPI_Comm_free(&half);
    MPI_Comm_free(&inter);
    wrong += wrong_in_intercommunicator(copy, whole, parts);
    wrong += wrong_in_merged(copy, whole, parts, alternate ? 0 : 1);
    wrong += wrong_in_split(copy, whole, parts);
    if (splits_by_type) wrong += wrong_in_split_type(copy, whole, parts);
    wrong += wrong_in_create(copy, whole, parts);
    MPI_Comm_disconnect(&copy);
  }
  return wrong;
}

}  // namespace gapless::test
