// Groups of endpoints. A handle is a group of the library that has this process alone, so that conversions to Fortran
// and back are right; a record says of which endpoints it stands.
#pragma once

#include <memory>
#include <vector>

#include "endpoints/endpoint.hpp"

namespace gapless::mpi::endpoints {

struct Group {
  std::vector<Identity> members;  ///< by rank
  Identity self;                  ///< the endpoint that asked for it, whose rank MPI_Group_rank tells
};

namespace groups {

/// Makes a handle; MPI_GROUP_EMPTY where there are no members. An error code, not raised.
int make(Group group, MPI_Group* handle);
/// What the handle stands for; null for groups of processes.
std::shared_ptr<const Group> find(MPI_Group handle) noexcept;
/// The handle is freed.
void forget(MPI_Group handle) noexcept;
/// No handle of any group of endpoints is there. A load.
bool are_none() noexcept;

/// Its place among the members; MPI_UNDEFINED if it is none.
int rank_of(const std::vector<Identity>& members, const Identity& one) noexcept;
/// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
int compare(std::vector<Identity> a, std::vector<Identity> b);

}  // namespace groups
}  // namespace gapless::mpi::endpoints
