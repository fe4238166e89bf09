// What a program may do wrong with endpoints, and the error it gets.

#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

#include "gapless/endpoints.h"
#include "misuse/asked.hpp"
#include "on_endpoints.hpp"
#include "support/environment.hpp"

namespace gapless::test {
namespace {

class Info {
 public:
  Info(const char* key, const char* value) {
    MPI_Info_create(&info_);
    MPI_Info_set(info_, key, value);
  }
  ~Info() { MPI_Info_free(&info_); }
  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

TEST(Misuse, WithoutThreadMultiple) {
  if (has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD);
  MPI_Comm handle = MPI_COMM_NULL;
  EXPECT_EQ(MPI_ERR_OTHER, error_class(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, MPI_INFO_NULL, &handle)));
  EXPECT_EQ(MPI_COMM_NULL, handle);
}

TEST(Misuse, AttachWithoutAStaticWorld) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  EXPECT_EQ(MPI_ERR_OTHER, error_class(MPIX_Endpoint_attach(0)));
  EXPECT_EQ(MPI_ERR_OTHER, error_class(MPIX_Init_endpoints(nullptr, nullptr, 1, MPI_THREAD_MULTIPLE, nullptr)));
}

TEST(Misuse, ThreadLevelsAreThoseOfMpi) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD);
  const Info single("thread_level", "MPI_THREAD_SINGLE"), none("thread_level", "SINGLE"), other("colour", "red");
  MPI_Comm handle = MPI_COMM_NULL;
  for (const Info* info : {&single, &other}) {
    EXPECT_EQ(MPI_SUCCESS, MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, info->get(), &handle));
    MPI_Comm_free(&handle);
  }
  // One process's mistake is every process's error, or the others would wait for it.
  EXPECT_EQ(MPI_ERR_INFO_VALUE, error_class(MPIX_Comm_create_endpoints(
                                    MPI_COMM_WORLD, 1, rank() == 0 ? none.get() : MPI_INFO_NULL, &handle)));
}

TEST(Misuse, OfTheQuery) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  int count = -1;
  EXPECT_EQ(MPI_SUCCESS, MPIX_Query_endpoints(MPI_COMM_WORLD, &count));
  EXPECT_LE(1, count);
  EXPECT_GE(static_cast<int>(std::thread::hardware_concurrency()), count);
  EXPECT_EQ(MPI_ERR_ARG, error_class(MPIX_Query_endpoints(MPI_COMM_WORLD, rank() == 0 ? nullptr : &count)));
}

TEST(Misuse, HandlesAfterTheirFree) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  MPI_Comm handle = MPI_COMM_NULL;
  MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, MPI_INFO_NULL, &handle);
  MPI_Comm copy = handle;
  EXPECT_EQ(MPI_SUCCESS, MPI_Comm_free(&handle));
  int number = 0;
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Comm_rank(copy, &number)));
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Send(&number, 1, MPI_INT, 0, 0, copy)));
  MPI_Comm made = MPI_COMM_NULL;
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Comm_dup(copy, &made)));
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPIX_Comm_create_endpoints(copy, 1, MPI_INFO_NULL, &made)));
  MPI_Comm twice = copy;
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Comm_free(&twice)));
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Comm_free(&handle)));
}

TEST(Misuse, AHandleThatTheLibraryGivesAgainIsGood) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD);
  bool given_again = false;
  for (int i = 0; i < 64; ++i) {
    MPI_Comm handle = MPI_COMM_NULL, made = MPI_COMM_NULL;
    MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &handle);
    const MPI_Comm freed = handle;
    MPI_Comm_free(&handle);
    MPI_Comm_dup(MPI_COMM_SELF, &made);
    given_again = given_again || made == freed;
    int size = 0;
    EXPECT_EQ(MPI_SUCCESS, MPI_Comm_size(made, &size));
    EXPECT_EQ(MPI_SUCCESS, MPI_Comm_free(&made));
  }
  RecordProperty("given_again", given_again ? 1 : 0);
}

MPI_Comm seen_in_callback;
int delete_attribute(MPI_Comm handle, int, void*, void*) {
  seen_in_callback = handle;
  int size = 0;
  return MPI_Comm_size(handle, &size) != MPI_SUCCESS || size != 1;
}

TEST(Misuse, ACallbackOfAFreeMayUseTheHandle) {
  if (!has_threads()) return;
  MPI_Comm handle = MPI_COMM_NULL;
  int key = MPI_KEYVAL_INVALID;
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &handle);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &key, nullptr);
  MPI_Comm_set_attr(handle, key, nullptr);
  const MPI_Comm expected = handle;
  EXPECT_EQ(MPI_SUCCESS, MPI_Comm_free(&handle));
  EXPECT_EQ(expected, seen_in_callback);
  MPI_Comm_free_keyval(&key);
}

/// The library's communicators are few (2045 of MPICH): one process has none left, and all are told so.
TEST(Misuse, MoreEndpointsThanTheLibraryHasCommunicatorsFor) {
  if (!has_threads()) return;
  constexpr std::size_t many = 4000;
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  std::vector<MPI_Comm> copies;
  for (MPI_Comm copy; rank() == 0 && copies.size() < many && MPI_Comm_dup(MPI_COMM_SELF, &copy) == MPI_SUCCESS;)
    copies.push_back(copy);
  int ran_out = copies.size() < many ? 1 : 0;
  MPI_Bcast(&ran_out, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<MPI_Comm> handles(3, MPI_COMM_NULL);
  const auto create = [&] { return MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 3, MPI_INFO_NULL, handles.data()); };
  const int code = create();
  RecordProperty("ran_out", ran_out);
  if (ran_out != 0) {
    EXPECT_EQ(MPI_ERR_NO_MEM, error_class(code));
    EXPECT_EQ(std::vector<MPI_Comm>(3, MPI_COMM_NULL), handles);
    for (int again = 0; again < 700; ++again) create();
  } else {
    EXPECT_EQ(MPI_SUCCESS, code);
    for (MPI_Comm& handle : handles) MPI_Comm_free(&handle);
  }
  for (MPI_Comm& copy : copies) MPI_Comm_free(&copy);
  // Each takes handles and lanes, and either may run out first. What failed has left nothing behind.
  for (int round = 0; round < 2; ++round) {
    std::vector<std::vector<MPI_Comm>> all;
    while (all.size() < many / 4 && create() == MPI_SUCCESS) all.push_back(handles);
    EXPECT_LT(100U, all.size());
    for (auto& made : all) {
      for (MPI_Comm& handle : made) EXPECT_EQ(MPI_SUCCESS, MPI_Comm_free(&handle));
    }
  }
}

/// Of two parts that both have an endpoint in the first process, one has its other endpoint in the second process and
/// one in the third. Those of a part are told the same, and nobody waits for a process that has failed before.
int wrong_in_parts(MPI_Comm comm) {
  const int partner = rank(comm) ^ 2;
  MPI_Comm part = MPI_COMM_NULL;
  const int code = error_class(MPI_Comm_split(comm, rank(comm) % 2, 0, &part));
  int of_partner = -1, sum = -1;
  MPI_Sendrecv(&code, 1, MPI_INT, partner, 0, &of_partner, 1, MPI_INT, partner, 0, comm, MPI_STATUS_IGNORE);
  int wrong = code != of_partner;
  if (code != MPI_SUCCESS) return wrong + (part != MPI_COMM_NULL);
  const int mine = 1 + rank(comm);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, part);
  wrong += sum != mine + 1 + partner;
  MPI_Comm_free(&part);
  return wrong;
}

TEST(Misuse, ASplitThatTheLibraryHasFewCommunicatorsLeftFor) {
  if (!has_threads() || size() < 3) return;
  const ReturnErrors returned_here(MPI_COMM_SELF);
  Endpoints endpoints([](int process) { return process == 0 ? 2 : process < 3 ? 1 : 0; });
  std::optional<LastCommunicators> last;
  if (rank() == 0) last.emplace();
  constexpr int enough = 12;  // for two handles and all that both parts are made of
  EXPECT_EQ(0, endpoints.run([&](MPI_Comm comm) {
    int wrong = 0;
    for (int left = 0; left <= enough; ++left) {
      wrong += wrong_in_parts(comm);
      MPI_Barrier(comm);
      if (rank(comm) == 0 && *last) last->free_one();
      MPI_Barrier(comm);
    }
    return wrong;
  }));
  if (last) RecordProperty("ran_out", *last ? 1 : 0);
}

/// What one endpoint alone begins never ends, and holds nobody up: neither the frees nor MPI_Finalize.
TEST(Misuse, ACollectiveOfSomeEndpointsThatAreThenFreed) {
  if (!has_threads()) return;
  std::vector<MPI_Comm> handles(2);
  MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 2, MPI_INFO_NULL, handles.data());
  MPI_Request request = MPI_REQUEST_NULL;
  int flag = 1;
  if (rank() == 0) {
    EXPECT_EQ(MPI_SUCCESS, MPI_Ibarrier(handles[0], &request));
    EXPECT_EQ(MPI_SUCCESS, MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    EXPECT_EQ(0, flag);
  }
  for (MPI_Comm& handle : handles) EXPECT_EQ(MPI_SUCCESS, MPI_Comm_free(&handle));
}

TEST(Misuse, AMessageToAnEndpointWhoseHandleIsFreed) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  std::vector<MPI_Comm> handles(2);
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 2, MPI_INFO_NULL, handles.data());
  MPI_Comm_free(&handles[1]);
  const std::vector<int> numbers(40000);
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Send(numbers.data(), 1, MPI_INT, 1, 0, handles[0])));
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Send(numbers.data(), 40000, MPI_INT, 1, 0, handles[0])));
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Ssend(numbers.data(), 1, MPI_INT, 1, 0, handles[0])));
  MPI_Comm_free(&handles[0]);
}

TEST(Misuse, AnIntercommunicatorAsParent) {
  if (!has_threads() || size() < 2) return;
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL, handle = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank() % 2, 0, &inter);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPIX_Comm_create_endpoints(inter, 1, MPI_INFO_NULL, &handle)));
  EXPECT_EQ(MPI_COMM_NULL, handle);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

/// Of making them from endpoints. A mistake that both groups make, or all of one, so that nobody waits for others.
int wrong_in_making(MPI_Comm comm, MPI_Comm half) {
  const int other = 1 - rank(comm) % 2;
  int wrong = 0, number = 0;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  wrong += differs(MPI_ERR_COMM, MPI_Comm_remote_size(comm, &number));
  wrong += differs(MPI_ERR_COMM, MPI_Comm_remote_group(comm, &group));
  wrong += differs(MPI_ERR_COMM, MPI_Intercomm_merge(comm, 0, &made));
  wrong += differs(MPI_ERR_RANK, MPI_Intercomm_create(half, size(half), comm, other, 0, &made));
  wrong += differs(MPI_ERR_ARG, MPI_Intercomm_create(half, 0, comm, other, 0, nullptr));
  wrong += differs(MPI_ERR_RANK, MPI_Intercomm_create(half, 0, comm, size(comm), 0, &made));  // the leader's alone
  wrong += differs(MPI_ERR_GROUP, MPI_Intercomm_create(comm, 0, comm, 0, 0, &made));
  wrong += differs(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Intercomm_create(MPI_COMM_SELF, 0, comm, 0, 0, &made));
  return wrong + (made != MPI_COMM_NULL) + (group != MPI_GROUP_NULL);
}

int wrong_in_using(MPI_Comm inter) {
  int wrong = 0, number = 0, sum = 0, remote = 0, dimension = 1, period = 0;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_remote_size(inter, &remote);
  std::vector<int> numbers(static_cast<std::size_t>(remote));
  for (const int code :
       {MPI_Scan(&number, &number, 1, MPI_INT, MPI_SUM, inter), MPI_Comm_create_group(inter, MPI_GROUP_EMPTY, 0, &made),
        MPI_Cart_create(inter, 1, &dimension, &period, 0, &made), MPI_Intercomm_create(inter, 0, inter, 0, 0, &made)})
    wrong += differs(MPI_ERR_UNSUPPORTED_OPERATION, code);
  // All ranks make each of these mistakes, so that nobody waits for others.
  for (const int root : {remote, -1000}) {
    wrong += differs(MPI_ERR_ROOT, MPI_Bcast(&number, 1, MPI_INT, root, inter));
    wrong += differs(MPI_ERR_ROOT, MPI_Gather(&number, 1, MPI_INT, numbers.data(), 1, MPI_INT, root, inter));
    wrong += differs(MPI_ERR_ROOT, MPI_Ireduce(&number, &sum, 1, MPI_INT, MPI_SUM, root, inter, &request));
  }
  wrong += differs(MPI_ERR_BUFFER, MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_SUM, inter));
  wrong += differs(MPI_ERR_BUFFER, MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, numbers.data(), 1, MPI_INT, inter));
  wrong += differs(MPI_ERR_BUFFER, MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, numbers.data(), 1, MPI_INT, inter));
  wrong += differs(MPI_ERR_BUFFER, MPI_Scatter(numbers.data(), 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, inter));
  wrong += differs(MPI_ERR_COMM, MPIX_Comm_create_endpoints(inter, 1, MPI_INFO_NULL, &made));
  wrong += differs(MPI_ERR_RANK, MPI_Send(&number, 1, MPI_INT, remote, 0, inter));
  wrong += differs(MPI_ERR_RANK, MPI_Recv(&number, 1, MPI_INT, remote, 0, inter, MPI_STATUS_IGNORE));
  wrong += differs(MPI_ERR_ARG, MPI_Intercomm_merge(inter, 0, nullptr));
  MPI_Group theirs = MPI_GROUP_EMPTY;
  MPI_Comm_remote_group(inter, &theirs);
  wrong += differs(MPI_ERR_GROUP, MPI_Comm_create(inter, theirs, &made));
  MPI_Group_free(&theirs);
  wrong += differs(MPI_ERR_ARG, MPI_Comm_split(inter, -1, 0, &made));
  return wrong + (made != MPI_COMM_NULL) + (request != MPI_REQUEST_NULL);
}

TEST(Misuse, OfIntercommunicatorsOfEndpoints) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  EXPECT_EQ(0, on_endpoints(each(2), [](MPI_Comm comm) {
              MPI_Comm half, inter;
              MPI_Comm_split(comm, rank(comm) % 2, 0, &half);
              int wrong = wrong_in_making(comm, half);
              MPI_Intercomm_create(half, 0, comm, 1 - rank(comm) % 2, 0, &inter);
              wrong += wrong_in_using(inter);
              MPI_Comm_free(&inter);
              MPI_Comm_free(&half);
              return wrong;
            }));
}

/// Only MPI_COMM_WORLD has the processes of both groups, but the program's call is about the local group's
/// communicator.
TEST(Misuse, AnIntercommunicatorThatTheLibraryHasNoCommunicatorsFor) {
  if (!has_threads() || size() < 2) return;
  constexpr std::size_t many = 4000;
  const ReturnErrors returned_here(MPI_COMM_SELF);
  const Told<0> of_world;
  const Told<1> of_half;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world.handler);
  std::atomic<int> ran_out = 0;
  EXPECT_EQ(0, on_endpoints(each(2), [&](MPI_Comm comm) {
              const int side = rank(comm) % 2;
              int wrong = 0, has_none = 0;
              MPI_Comm half, inter = MPI_COMM_NULL;
              MPI_Comm_split(comm, side, 0, &half);
              MPI_Comm_set_errhandler(half, of_half.handler);
              std::vector<MPI_Comm> copies;
              for (MPI_Comm copy; rank(comm) == 0 && copies.size() < many && MPI_Comm_dup(MPI_COMM_SELF, &copy) == 0;)
                copies.push_back(copy);
              if (rank(comm) == 0) has_none = copies.size() < many ? 1 : 0;
              MPI_Bcast(&has_none, 1, MPI_INT, 0, comm);
              const auto create = [&] { return MPI_Intercomm_create(half, 0, comm, 1 - side, 0, &inter); };
              if (has_none != 0) {
                wrong += differs(MPI_ERR_OTHER, create());
                wrong += inter != MPI_COMM_NULL;
                MPI_Barrier(comm);
              }
              ran_out = has_none;
              for (MPI_Comm& copy : copies) MPI_Comm_free(&copy);
              MPI_Barrier(comm);
              wrong += differs(MPI_SUCCESS, create());
              MPI_Comm_free(&inter);
              MPI_Comm_free(&half);
              return wrong;
            }));
  RecordProperty("ran_out", ran_out);
  EXPECT_EQ(ran_out != 0 ? 2 : 0, Told<1>::times);
  EXPECT_EQ(0, Told<0>::times);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  EXPECT_EQ(of_world.handler, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
TEST(Misuse, OfAttachedBuffers) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  MPI_Comm handle = MPI_COMM_NULL;
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &handle);
  std::vector<char> room(1000);
  void* detached = nullptr;
  int bytes = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Comm_attach_buffer(handle, room.data(), 1000));
  EXPECT_NE(MPI_SUCCESS, MPI_Comm_attach_buffer(handle, room.data(), 1000));
  EXPECT_EQ(MPI_ERR_ARG, error_class(MPI_Comm_iflush_buffer(handle, nullptr)));
  EXPECT_EQ(MPI_SUCCESS, MPI_Comm_detach_buffer(handle, &detached, &bytes));
  EXPECT_EQ(room.data(), detached);
  EXPECT_EQ(1000, bytes);
  MPI_Comm_free(&handle);
}
#endif

/// A group for each handle, which is freed at the end.
class GroupOf {
 public:
  explicit GroupOf(MPI_Comm comm) { MPI_Comm_group(comm, &group_); }
  ~GroupOf() { MPI_Group_free(&group_); }
  GroupOf(const GroupOf&) = delete;
  GroupOf& operator=(const GroupOf&) = delete;
  operator MPI_Group() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

TEST(Misuse, OfGroups) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  MPI_Comm handle = MPI_COMM_NULL;
  MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, MPI_INFO_NULL, &handle);
  {
    const GroupOf group(handle), processes(MPI_COMM_WORLD);
    MPI_Group made = MPI_GROUP_NULL;
    int number = 0;
    const int past_end = size(), twice[2] = {0, 0};
    int backwards[1][3] = {{0, 0, 0}}, too_far[1][3] = {{0, size(), 1}};
    EXPECT_EQ(MPI_ERR_RANK, error_class(MPI_Group_incl(group, 1, &past_end, &made)));
    EXPECT_EQ(MPI_ERR_RANK, error_class(MPI_Group_excl(group, 2, twice, &made)));
    EXPECT_EQ(MPI_ERR_ARG, error_class(MPI_Group_incl(group, -1, twice, &made)));
    EXPECT_EQ(MPI_ERR_ARG, error_class(MPI_Group_range_incl(group, 1, backwards, &made)));
    EXPECT_EQ(MPI_ERR_RANK, error_class(MPI_Group_range_excl(group, 1, too_far, &made)));
    EXPECT_EQ(MPI_ERR_RANK, error_class(MPI_Group_translate_ranks(group, 1, &past_end, group, &number)));
    EXPECT_EQ(MPI_ERR_ARG, error_class(MPI_Group_size(group, nullptr)));
    // What endpoints and processes have in common is not known.
    EXPECT_EQ(MPI_ERR_GROUP, error_class(MPI_Group_union(group, processes, &made)));
    EXPECT_EQ(MPI_ERR_GROUP, error_class(MPI_Group_compare(processes, group, &number)));
    const int none = MPI_PROC_NULL;
    EXPECT_EQ(MPI_SUCCESS, MPI_Group_translate_ranks(group, 1, &none, MPI_GROUP_EMPTY, &number));
    EXPECT_EQ(MPI_PROC_NULL, number);
    EXPECT_EQ(MPI_GROUP_NULL, made);
    MPI_Comm comm = MPI_COMM_NULL;
    EXPECT_EQ(MPI_ERR_GROUP, error_class(MPI_Comm_create_group(handle, processes, 0, &comm)));
    EXPECT_EQ(MPI_ERR_TAG, error_class(MPI_Comm_create_group(handle, group, -1, &comm)));
    // One rank's mistake is every rank's error, or the others would wait for it.
    EXPECT_EQ(MPI_ERR_GROUP, error_class(MPI_Comm_create(handle, rank() == 0 ? processes : group, &comm)));
    EXPECT_EQ(MPI_COMM_NULL, comm);
  }
  MPI_Comm_free(&handle);
}

}  // namespace
}  // namespace gapless::test
