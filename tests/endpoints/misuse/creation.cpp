// What fails while communicators are made of endpoints: all who make one hear of it.

#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/resource.h>

#include <array>
#include <fstream>
#include <optional>
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

/// One process has address space for the endpoints' handles, but not for their inboxes. All are told.
TEST(Misuse, EndpointsThatAProcessHasNoMemoryFor) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  constexpr int many = 40;
  std::vector<MPI_Comm> handles(many, MPI_COMM_NULL);
  MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, MPI_INFO_NULL, handles.data());
  MPI_Comm_free(&handles[0]);
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  constexpr rlim_t page = 4096, more = 60 << 20;
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit less{pages * page + more, before.rlim_max};
  if (rank() == size() - 1) setrlimit(RLIMIT_AS, &less);
  const int code = MPIX_Comm_create_endpoints(MPI_COMM_WORLD, many, MPI_INFO_NULL, handles.data());
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(MPI_ERR_NO_MEM, error_class(code));
  EXPECT_EQ(std::vector<MPI_Comm>(many, MPI_COMM_NULL), handles);
  if (code == MPI_SUCCESS) {
    for (MPI_Comm& handle : handles) MPI_Comm_free(&handle);
  }
}

/// Each way to make a communicator of all endpoints. `halves`: an intercommunicator of all.
int make_of_all(int way, MPI_Comm comm, MPI_Comm halves, MPI_Comm* made) {
  if (way == 0) return MPI_Comm_dup(comm, made);
  if (way == 1) return MPI_Intercomm_merge(halves, 0, made);
  if (way == 2) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Comm_idup(comm, made, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Group all;
  MPI_Comm_group(comm, &all);
  const int code = MPI_Comm_create_group(comm, all, 7, made);
  MPI_Group_free(&all);
  return code;
}

/// The first process has few communicators left. All get one, or all are told.
TEST(Misuse, CommunicatorsOfAllThatOneProcessHasFewLeftFor) {
  if (!has_threads() || size() != 2) return;
  const ReturnErrors returned_here(MPI_COMM_SELF);
  std::optional<LastCommunicators> last;
  Endpoints endpoints(each(2));
  EXPECT_EQ(0, endpoints.run([&](MPI_Comm comm) {
    int wrong = 0;
    MPI_Comm half, halves;
    MPI_Comm_split(comm, rank(comm) % 2, 0, &half);
    MPI_Intercomm_create(half, 0, comm, 1 - rank(comm) % 2, 0, &halves);
    if (rank(comm) == 0) last.emplace();
    constexpr int enough = 8, ways = 4;
    for (int left = 0; left <= enough; ++left) {
      for (int way = 0; way < ways; ++way) {
        MPI_Barrier(comm);
        MPI_Comm made = MPI_COMM_NULL;
        const int code = make_of_all(way, comm, halves, &made), has_failed = code != MPI_SUCCESS;
        int failures = -1;
        MPI_Allreduce(&has_failed, &failures, 1, MPI_INT, MPI_SUM, comm);
        wrong += failures != 0 && failures != size(comm);
        wrong += (made == MPI_COMM_NULL) != (code != MPI_SUCCESS);
        if (made == MPI_COMM_NULL) continue;
        const int one = 1;
        int sum = 0;
        if (failures == 0) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made);
        wrong += sum != size(comm);
        MPI_Comm_free(&made);
      }
      MPI_Barrier(comm);
      if (rank(comm) == 0 && *last) last->free_one();
    }
    MPI_Barrier(comm);
    if (rank(comm) == 0) last.reset();
    MPI_Comm_free(&halves);
    MPI_Comm_free(&half);
    return wrong;
  }));
}

int refuse_to_copy(MPI_Comm, int, void*, void*, void*, int*) { return MPI_ERR_OTHER; }

/// All ranks are told, and what they leave is freed: MPI_Finalize finds nothing.
TEST(Misuse, ADuplicateWhoseAttributesCannotBeCopied) {
  if (!has_threads()) return;
  std::vector<MPI_Comm> handles(2);
  MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 2, MPI_INFO_NULL, handles.data());
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(refuse_to_copy, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  for (MPI_Comm handle : handles) MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  if (rank() == 0) MPI_Comm_set_attr(handles[0], key, nullptr);
  for (const bool is_blocking : {true, false}) {
    const std::vector<int> codes = classes_of(handles, [is_blocking](MPI_Comm comm) {
      MPI_Comm copy = MPI_COMM_WORLD;
      MPI_Request request = MPI_REQUEST_NULL;
      int code = is_blocking ? MPI_Comm_dup(comm, &copy) : MPI_Comm_idup(comm, &copy, &request);
      if (!is_blocking && code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      return copy == MPI_COMM_NULL ? code : MPI_ERR_COMM;
    });
    EXPECT_EQ(std::vector<int>(2, MPI_ERR_OTHER), codes);
  }
  for (MPI_Comm& handle : handles) MPI_Comm_free(&handle);
  MPI_Comm_free_keyval(&key);
}

}  // namespace
}  // namespace gapless::test
