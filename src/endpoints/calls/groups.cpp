// Groups of endpoints, and what a program asks of groups (MPI 5.0, 7.3). These calls stand in the place of the
// library's for every handle: groups of processes alone go there. Endpoints and processes have no members in common
// that could be compared, so a group of processes beside one of endpoints is refused, but for MPI_GROUP_EMPTY.
#include "endpoints/communicators/groups.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "endpoints/calls/calls.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints::calls {
namespace {

using Members = std::vector<Identity>;

bool holds(const Members& members, const Identity& one) noexcept {
  return groups::rank_of(members, one) != MPI_UNDEFINED;
}

/// The groups of a call that takes two.
class TwoGroups {
 public:
  TwoGroups(MPI_Group first, MPI_Group second) noexcept {
    const std::array handles = {first, second};
    for (std::size_t i = 0; i < handles.size(); ++i) {
      found_[i] = groups::find(handles[i]);
      are_ours_ = are_ours_ || found_[i] != nullptr;
      is_mixed_ = is_mixed_ || (found_[i] == nullptr && handles[i] != MPI_GROUP_EMPTY);
    }
  }
  /// Is any of them of endpoints?
  bool are_ours() const noexcept { return are_ours_; }
  int check(const char* function) const noexcept {
    return is_mixed_ ? code_with_text(MPI_ERR_GROUP, function, "a group of endpoints beside one of processes")
                     : MPI_SUCCESS;
  }
  const Members& members(std::size_t i) const noexcept {
    static const Members none;
    return found_[i] == nullptr ? none : found_[i]->members;
  }
  /// Whose calls they are: that of the first group, or of the second where that is empty.
  /// Precondition: are_ours().
  Identity self() const noexcept { return found_[0] != nullptr ? found_[0]->self : found_[1]->self; }

 private:
  std::array<std::shared_ptr<const Group>, 2> found_;
  bool are_ours_ = false, is_mixed_ = false;
};

/// The result of `work()`, an error code, raised.
template <class Work>
int checked(Work work) noexcept {
  return guarded([&] {
    const int code = work();
    return code == MPI_SUCCESS ? code : raise_without_object(code);
  });
}

/// A group of what `combine(a, b)` takes from two.
template <class Library, class Combine>
int combine_groups(const char* name, Library library, MPI_Group first, MPI_Group second, MPI_Group* made,
                   Combine combine) noexcept {
  const TwoGroups both(first, second);
  if (!both.are_ours()) return library(first, second, made);
  return checked([&]() -> int {
    if (const int code = both.check(name); code != MPI_SUCCESS) return code;
    return groups::make({combine(both.members(0), both.members(1)), both.self()}, made);
  });
}

/// Ranks that a program names: each once, all of them there.
int check_ranks(const Members& members, std::span<const int> ranks) {
  std::vector<bool> is_taken(members.size(), false);
  for (const int rank : ranks) {
    if (rank < 0 || rank >= static_cast<int>(members.size()) || is_taken[static_cast<std::size_t>(rank)])
      return MPI_ERR_RANK;
    is_taken[static_cast<std::size_t>(rank)] = true;
  }
  return MPI_SUCCESS;
}

enum class Selection { include, exclude };

/// A group of those with these ranks, in this order, or of the others.
int select(const Group& group, std::span<const int> ranks, Selection selection, MPI_Group* made) {
  if (const int code = check_ranks(group.members, ranks); code != MPI_SUCCESS) return code;
  Group selected{{}, group.self};
  if (selection == Selection::include) {
    for (const int rank : ranks) selected.members.push_back(group.members[static_cast<std::size_t>(rank)]);
  } else {
    for (int rank = 0; rank < static_cast<int>(group.members.size()); ++rank) {
      if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end())
        selected.members.push_back(group.members[static_cast<std::size_t>(rank)]);
    }
  }
  return groups::make(std::move(selected), made);
}

template <class Library>
int select_ranks(Library library, MPI_Group handle, int count, const int* ranks, Selection selection,
                 MPI_Group* made) noexcept {
  const auto group = groups::find(handle);
  if (group == nullptr) return library(handle, count, ranks, made);
  return checked([&]() -> int {
    if (count < 0 || (count > 0 && ranks == nullptr)) return MPI_ERR_ARG;
    return select(*group, {ranks, static_cast<std::size_t>(count)}, selection, made);
  });
}

/// The ranks of triplets (first, last, stride) (MPI 5.0, 7.3.2). An error code.
int expand(int count, const int ranges[][3], std::size_t size, std::vector<int>& ranks) {
  for (int i = 0; i < count; ++i) {
    const std::int64_t first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
    const auto most = static_cast<std::int64_t>(size);
    if (first < 0 || first >= most || last < 0 || last >= most) return MPI_ERR_RANK;
    if (stride == 0 || (stride > 0 ? last < first : last > first)) return MPI_ERR_ARG;
    for (std::int64_t rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride)
      ranks.push_back(static_cast<int>(rank));
  }
  return MPI_SUCCESS;
}

template <class Library>
int select_ranges(Library library, MPI_Group handle, int count, int ranges[][3], Selection selection,
                  MPI_Group* made) noexcept {
  const auto group = groups::find(handle);
  if (group == nullptr) return library(handle, count, ranges, made);
  return checked([&]() -> int {
    if (count < 0 || (count > 0 && ranges == nullptr)) return MPI_ERR_ARG;
    std::vector<int> ranks;
    const int code = expand(count, ranges, group->members.size(), ranks);
    return code == MPI_SUCCESS ? select(*group, ranks, selection, made) : code;
  });
}

}  // namespace

int Comm_group(Endpoint& endpoint, MPI_Comm, MPI_Group* made) {
  const Identity& self = endpoint.communicator->identities[static_cast<std::size_t>(endpoint.rank)];
  return raise(endpoint, groups::make({endpoint.members(false), self}, made));
}

int Comm_remote_group(Endpoint& endpoint, MPI_Comm, MPI_Group* made) {
  if (!endpoint.sides.is_inter()) return raise(endpoint, MPI_ERR_COMM);
  const Identity& self = endpoint.communicator->identities[static_cast<std::size_t>(endpoint.rank)];
  return raise(endpoint, groups::make({endpoint.members(true), self}, made));
}

int Group_free(MPI_Group* handle) {
  if (handle != nullptr && groups::find(*handle) != nullptr) groups::forget(*handle);
  return inner.Group_free(handle);
}

int Group_size(MPI_Group handle, int* size) {
  const auto group = groups::find(handle);
  if (group == nullptr) return inner.Group_size(handle, size);
  *size = static_cast<int>(group->members.size());
  return MPI_SUCCESS;
}

int Group_rank(MPI_Group handle, int* rank) {
  const auto group = groups::find(handle);
  if (group == nullptr) return inner.Group_rank(handle, rank);
  *rank = groups::rank_of(group->members, group->self);
  return MPI_SUCCESS;
}

int Group_translate_ranks(MPI_Group first, int count, const int* ranks, MPI_Group second, int* translated) {
  const TwoGroups both(first, second);
  if (!both.are_ours()) return inner.Group_translate_ranks(first, count, ranks, second, translated);
  return checked([&]() -> int {
    if (const int code = both.check("MPI_Group_translate_ranks"); code != MPI_SUCCESS) return code;
    if (count < 0 || (count > 0 && ranks == nullptr)) return MPI_ERR_ARG;
    const Members &from = both.members(0), &to = both.members(1);
    for (int i = 0; i < count; ++i) {
      if (ranks[i] == MPI_PROC_NULL) {
        translated[i] = MPI_PROC_NULL;
        continue;
      }
      if (ranks[i] < 0 || ranks[i] >= static_cast<int>(from.size())) return MPI_ERR_RANK;
      translated[i] = groups::rank_of(to, from[static_cast<std::size_t>(ranks[i])]);
    }
    return MPI_SUCCESS;
  });
}

int Group_compare(MPI_Group first, MPI_Group second, int* result) {
  const TwoGroups both(first, second);
  if (!both.are_ours()) return inner.Group_compare(first, second, result);
  return checked([&]() -> int {
    if (const int code = both.check("MPI_Group_compare"); code != MPI_SUCCESS) return code;
    *result = groups::compare(both.members(0), both.members(1));
    return MPI_SUCCESS;
  });
}

int Group_union(MPI_Group first, MPI_Group second, MPI_Group* made) {
  return combine_groups("MPI_Group_union", inner.Group_union, first, second, made, [](Members all, const Members& b) {
    const Members a = all;
    std::copy_if(b.begin(), b.end(), std::back_inserter(all), [&](const Identity& one) { return !holds(a, one); });
    return all;
  });
}

int Group_intersection(MPI_Group first, MPI_Group second, MPI_Group* made) {
  return combine_groups("MPI_Group_intersection", inner.Group_intersection, first, second, made,
                        [](Members a, const Members& b) {
                          std::erase_if(a, [&](const Identity& one) { return !holds(b, one); });
                          return a;
                        });
}

int Group_difference(MPI_Group first, MPI_Group second, MPI_Group* made) {
  return combine_groups("MPI_Group_difference", inner.Group_difference, first, second, made,
                        [](Members a, const Members& b) {
                          std::erase_if(a, [&](const Identity& one) { return holds(b, one); });
                          return a;
                        });
}

int Group_incl(MPI_Group group, int count, const int* ranks, MPI_Group* made) {
  return select_ranks(inner.Group_incl, group, count, ranks, Selection::include, made);
}

int Group_excl(MPI_Group group, int count, const int* ranks, MPI_Group* made) {
  return select_ranks(inner.Group_excl, group, count, ranks, Selection::exclude, made);
}

int Group_range_incl(MPI_Group group, int count, int ranges[][3], MPI_Group* made) {
  return select_ranges(inner.Group_range_incl, group, count, ranges, Selection::include, made);
}

int Group_range_excl(MPI_Group group, int count, int ranges[][3], MPI_Group* made) {
  return select_ranges(inner.Group_range_excl, group, count, ranges, Selection::exclude, made);
}

}  // namespace gapless::mpi::endpoints::calls
