// What fails while communicators are made of endpoints: all who make one hear of it.

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <vector>

#include "gapless/endpoints.h"
#include "misuse/asked.hpp"
#include "on_endpoints.hpp"
#include "support/environment.hpp"

namespace gapless::test {
namespace {

/// A communicator that is made of processes or of endpoints may have the leaders, but the call is about the local one.
TEST(Misuse, AnIntercommunicatorWithoutAnotherLeader) {
  if (!has_threads()) return;
  const Told<2> of_leaders, of_half;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_leaders.handler);
  Told<2>::times = 0;
  EXPECT_EQ(0, on_endpoints(each(2), [&](MPI_Comm comm) {
              MPI_Comm half, made = MPI_COMM_NULL;
              MPI_Comm_split(comm, rank(comm) % 2, 0, &half);
              MPI_Comm_set_errhandler(comm, of_leaders.handler);
              int wrong = 0;
              for (const MPI_Comm leaders : {MPI_COMM_WORLD, comm}) {
                for (const int leader : {size(leaders), -100, int{MPI_PROC_NULL}, int{MPI_ANY_SOURCE}})
                  wrong += differs(MPI_ERR_RANK, MPI_Intercomm_create(half, 0, leaders, leader, 3, &made));
                wrong += differs(MPI_ERR_TAG, MPI_Intercomm_create(half, 0, leaders, 0, -1, &made));
              }
              wrong += differs(MPI_ERR_COMM, MPI_Intercomm_create(half, 0, MPI_COMM_NULL, 0, 0, &made));
              MPI_Comm_free(&half);
              return wrong + (made != MPI_COMM_NULL);
            }));
  EXPECT_EQ(0, Told<2>::times);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
/// The error handler of the communicator to be made is told, and no other.
TEST(Misuse, OfGroupsThatAreToHaveACommunicator) {
  if (!has_threads()) return;
  const Told<3> of_world_and_self;
  const Told<4> given;
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, of_world_and_self.handler);
  EXPECT_EQ(0, on_endpoints(each(2), [&](MPI_Comm comm) {
              const int next = (rank(comm) + 1) % size(comm);
              MPI_Group everyone, other;
              MPI_Comm_group(comm, &everyone);
              MPI_Group_incl(everyone, 1, &next, &other);
              int wrong = 0;
              MPI_Comm made = MPI_COMM_NULL;
              for (const MPI_Errhandler handler : {MPI_ERRORS_RETURN, given.handler}) {
                wrong += differs(MPI_ERR_GROUP, MPI_Comm_create_from_group(other, "x", MPI_INFO_NULL, handler, &made));
                wrong += differs(MPI_ERR_RANK, MPI_Intercomm_create_from_groups(everyone, -1, other, 0, "x",
                                                                                MPI_INFO_NULL, handler, &made));
                wrong += differs(
                    MPI_ERR_UNSUPPORTED_OPERATION,
                    MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, other, 0, "x", MPI_INFO_NULL, handler, &made));
              }
              MPI_Group_free(&everyone);
              MPI_Group_free(&other);
              return wrong + (made != MPI_COMM_NULL);
            }));
  EXPECT_EQ(0, Told<3>::times);
  EXPECT_EQ(6, Told<4>::times);
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
}
#endif

TEST(Misuse, AColourThatIsNoneInOneRank) {
  if (!has_threads()) return;
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              MPI_Comm made = MPI_COMM_NULL;
              const int code = MPI_Comm_split(comm, rank(comm) == 0 ? -5 : 0, 0, &made);
              return differs(MPI_ERR_ARG, code) + (made != MPI_COMM_NULL);
            }));
}

}  // namespace
}  // namespace gapless::test
