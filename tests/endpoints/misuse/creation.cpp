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

}  // namespace
}  // namespace gapless::test
