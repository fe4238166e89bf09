#include "mpi/lifetime/session.hpp"

#include "mpi/table/native.hpp"

namespace gapless::mpi::session {

#if GAPLESS_DECLARED_Session_init

namespace {

MPI_Session own;

bool group_of(const char* process_set, MPI_Group& group) noexcept {
  return native.Group_from_session_pset(own, process_set, &group) == MPI_SUCCESS;
}

bool create_communicator(MPI_Comm& alone) noexcept {
  MPI_Group group;
  if (!group_of("mpi://SELF", group)) return false;
  const int code = native.Comm_create_from_group(group, "gapless", MPI_INFO_NULL, MPI_ERRORS_RETURN, &alone);
  native.Group_free(&group);
  return code == MPI_SUCCESS;
}

}  // namespace

bool open(MPI_Comm& alone) noexcept {
  if (native.Session_init == nullptr || native.Comm_create_from_group == nullptr) return false;
  if (native.Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &own) != MPI_SUCCESS) return false;
  if (create_communicator(alone)) return true;
  native.Session_finalize(&own);
  return false;
}

void close(MPI_Comm& alone) noexcept {
  native.Comm_free(&alone);
  native.Session_finalize(&own);
}

void find_place(int& rank, int& ranks) noexcept {
  MPI_Group group;
  if (!group_of("mpi://WORLD", group)) return;
  native.Group_rank(group, &rank);
  native.Group_size(group, &ranks);
  native.Group_free(&group);
}

#else

bool open(MPI_Comm&) noexcept { return false; }
void close(MPI_Comm&) noexcept {}
void find_place(int&, int&) noexcept {}

#endif

}  // namespace gapless::mpi::session
