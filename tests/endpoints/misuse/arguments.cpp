// Arguments that no call takes: of collectives, and results without a place.

#include <gtest/gtest.h>
#include <mpi.h>

#include <utility>
#include <vector>

#include "gapless/endpoints.h"
#include "misuse/asked.hpp"
#include "on_endpoints.hpp"
#include "support/environment.hpp"

namespace gapless::test {
namespace {

TEST(Misuse, CollectivesWithMistakes) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  std::vector<MPI_Comm> handles(3);
  MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 3, MPI_INFO_NULL, handles.data());
  const std::vector<int> roots(3, MPI_ERR_ROOT), counts(3, MPI_ERR_COUNT), types(3, MPI_ERR_TYPE);
  const int all = 3 * size();
  EXPECT_EQ(roots, classes_of(handles, [&](MPI_Comm comm) {
              int number = 0;
              return MPI_Bcast(&number, 1, MPI_INT, all, comm);
            }));
  for (const int root : {-1, -2, -5, all}) {  // MPI_PROC_NULL and MPI_ANY_SOURCE are among them
    EXPECT_EQ(roots, classes_of(handles,
                                [root](MPI_Comm comm) {
                                  int number = 0, sum = 0;
                                  return MPI_Reduce(&number, &sum, 1, MPI_INT, MPI_SUM, root, comm);
                                }))
        << root;
  }
  EXPECT_EQ(counts, classes_of(handles, [](MPI_Comm comm) {
              int number = 0, sum = 0;
              return MPI_Allreduce(&number, &sum, -1, MPI_INT, MPI_SUM, comm);
            }));
  EXPECT_EQ(types, classes_of(handles, [](MPI_Comm comm) {
              int number = 0;
              return MPI_Bcast(&number, 1, MPI_DATATYPE_NULL, 0, comm);
            }));
  EXPECT_EQ(std::vector<int>(3, MPI_SUCCESS), classes_of(handles, [all](MPI_Comm comm) {
              const int one = 1;
              int sum = 0;
              const int code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
              return sum == all ? code : MPI_ERR_OTHER;
            }));
  for (MPI_Comm& handle : handles) MPI_Comm_free(&handle);
}

/// The classes of what reductions say of an operation that is not defined for the datatype.
std::vector<int> classes_of_reductions(MPI_Comm comm, int count, MPI_Datatype type, MPI_Op op) {
  const std::vector<double> operand(static_cast<std::size_t>(count * size(comm)), 1.0);
  std::vector<double> result(operand);
  const void* const from = operand.data();
  void* const to = result.data();
  std::vector<int> classes;
  for (const int code : {MPI_Allreduce(from, to, count, type, op, comm), MPI_Reduce(from, to, count, type, op, 0, comm),
                         MPI_Reduce_scatter_block(from, to, count, type, op, comm),
                         MPI_Scan(from, to, count, type, op, comm), MPI_Exscan(from, to, count, type, op, comm)})
    classes.push_back(error_class(code));
  MPI_Request request = MPI_REQUEST_NULL;
  classes.push_back(error_class(MPI_Iallreduce(from, to, count, type, op, comm, &request)));
  classes.push_back(request == MPI_REQUEST_NULL ? MPI_ERR_OP : MPI_SUCCESS);
  return classes;
}

/// All are told, by the handler of their own communicator: those of the world and of the process end the job here.
TEST(Misuse, OperationsThatAreNotForTheDatatype) {
  if (!has_threads()) return;
  MPI_Datatype derived;
  MPI_Type_contiguous(1, MPI_DOUBLE, &derived);
  MPI_Type_commit(&derived);
  const std::pair<MPI_Datatype, MPI_Op> all[] = {
      {MPI_DOUBLE, MPI_BAND}, {MPI_DOUBLE, MPI_MAXLOC}, {MPI_2INT, MPI_SUM}, {derived, MPI_SUM}};
  // Of one, of a number that is no power of two in several processes, and long ones.
  for (const int endpoints : {1, 3}) {
    for (const int count : {1, 5000}) {
      for (const auto& [type, op] : all) {
        EXPECT_EQ(0, on_endpoints(each(endpoints), [&, type = type, op = op](MPI_Comm comm) {
                    return classes_of_reductions(comm, count, type, op) != std::vector<int>(7, MPI_ERR_OP);
                  }));
      }
    }
  }
  MPI_Type_free(&derived);
}

/// The library has these from the start, though no name of MPI stands for them.
TEST(Misuse, OperationsOnDatatypesWithoutAName) {
  if (!has_threads()) return;
  constexpr int digits = 9;
  MPI_Datatype type;
  // Here alone: MPICH 5.0.2 may abort in MPI_Finalize where several threads have asked for the datatype at a time.
  MPI_Type_create_f90_integer(digits, &type);
  EXPECT_EQ(0, on_endpoints(each(3), [type](MPI_Comm comm) {
              const int one = 1;
              int sum = 0, later = 0;
              MPI_Request request = MPI_REQUEST_NULL;
              int wrong = MPI_Allreduce(&one, &sum, 1, type, MPI_SUM, comm) != MPI_SUCCESS;
              wrong += MPI_Iallreduce(&one, &later, 1, type, MPI_SUM, comm, &request) != MPI_SUCCESS;
              wrong += MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
              return wrong + (sum != size(comm)) + (later != size(comm));
            }));
}

/// The classes of what all collectives say of these arguments, on a communicator of one rank.
std::vector<int> classes_of_one(MPI_Comm comm, int count, MPI_Datatype type) {
  const int places = 0;
  int number = 0, other = 0;
  std::vector<int> classes;
  for (const int code :
       {MPI_Bcast(&number, count, type, 0, comm), MPI_Gather(&number, count, type, &other, count, type, 0, comm),
        MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, &other, count, type, 0, comm),
        MPI_Scatter(&number, count, type, &other, count, type, 0, comm),
        MPI_Scatter(&number, count, type, MPI_IN_PLACE, 0, MPI_INT, 0, comm),
        MPI_Allgather(&number, count, type, &other, count, type, comm),
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, &other, count, type, comm),
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, &other, &count, &places, type, comm),
        MPI_Alltoall(&number, count, type, &other, count, type, comm),
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, &other, count, type, comm),
        MPI_Alltoallv(&number, &count, &places, type, &other, &count, &places, type, comm),
        MPI_Reduce(&number, &other, count, type, MPI_SUM, 0, comm),
        MPI_Allreduce(&number, &other, count, type, MPI_SUM, comm),
        MPI_Reduce_scatter_block(&number, &other, count, type, MPI_SUM, comm),
        MPI_Reduce_scatter(&number, &other, &count, type, MPI_SUM, comm),
        MPI_Scan(&number, &other, count, type, MPI_SUM, comm), MPI_Exscan(&number, &other, count, type, MPI_SUM, comm)})
    classes.push_back(error_class(code));
  // What is wrong before anything is begun is said where it would begin.
  MPI_Request request = MPI_REQUEST_NULL;
  for (const int code : {MPI_Ibcast(&number, count, type, 0, comm, &request),
                         MPI_Igather(&number, count, type, &other, count, type, 0, comm, &request),
                         MPI_Iallreduce(&number, &other, count, type, MPI_SUM, comm, &request)}) {
    classes.push_back(error_class(code));
    if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return classes;
}

/// Nothing is sent and nothing combined, but mistakes are those of more ranks.
TEST(Misuse, CollectivesOfOne) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  MPI_Comm comm = MPI_COMM_NULL;
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &comm);
  const auto all = [](int error) { return std::vector<int>(20, error); };
  EXPECT_EQ(all(MPI_SUCCESS), classes_of_one(comm, 1, MPI_INT));
  EXPECT_EQ(all(MPI_SUCCESS), classes_of_one(comm, 0, MPI_INT));
  EXPECT_EQ(all(MPI_ERR_COUNT), classes_of_one(comm, -1, MPI_INT));
  EXPECT_EQ(all(MPI_ERR_TYPE), classes_of_one(comm, 1, MPI_DATATYPE_NULL));
  EXPECT_EQ(all(MPI_ERR_TYPE), classes_of_one(comm, 0, MPI_DATATYPE_NULL));
  for (const MPI_Op operation : {MPI_Op{MPI_OP_NULL}, MPI_Op{MPI_REPLACE}, MPI_Op{MPI_NO_OP}}) {
    const int number = 0;
    int sum = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(MPI_ERR_OP, error_class(MPI_Reduce(&number, &sum, 1, MPI_INT, operation, 0, comm)));
    EXPECT_EQ(MPI_ERR_OP, error_class(MPI_Allreduce(&number, &sum, 1, MPI_INT, operation, comm)));
    EXPECT_EQ(MPI_ERR_OP, error_class(MPI_Reduce_scatter_block(&number, &sum, 1, MPI_INT, operation, comm)));
    EXPECT_EQ(MPI_ERR_OP, error_class(MPI_Scan(&number, &sum, 1, MPI_INT, operation, comm)));
    EXPECT_EQ(MPI_ERR_OP, error_class(MPI_Exscan(&number, &sum, 1, MPI_INT, operation, comm)));
    EXPECT_EQ(MPI_ERR_OP, error_class(MPI_Iallreduce(&number, &sum, 1, MPI_INT, operation, comm, &request)));
    EXPECT_EQ(MPI_REQUEST_NULL, request);
  }
  MPI_Comm_free(&comm);
}

TEST(Misuse, DatatypesThatAreNotCommitted) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  MPI_Comm comm = MPI_COMM_NULL;
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &comm);
  MPI_Datatype type;
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  int from[6] = {}, to[6] = {};
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_ERR_TYPE, error_class(MPI_Send_init(from, 1, type, 0, 0, comm, &request)));
  EXPECT_EQ(MPI_ERR_TYPE, error_class(MPI_Recv_init(to, 1, type, 0, 0, comm, &request)));
  EXPECT_EQ(MPI_ERR_TYPE, error_class(MPI_Ibcast(from, 1, type, 0, comm, &request)));
  EXPECT_EQ(MPI_ERR_TYPE, error_class(MPI_Iallgather(from, 1, type, to, 1, type, comm, &request)));
  EXPECT_EQ(MPI_REQUEST_NULL, request);
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
}

TEST(Misuse, BuffersOfMessagesToNobody) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  MPI_Comm comm = MPI_COMM_NULL;
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &comm);
  int number = 0;
  const int nobody = MPI_PROC_NULL;
  const auto classes = [&](int count, MPI_Datatype type) {
    std::vector<int> all;
    for (const int code :
         {MPI_Send(&number, count, type, nobody, 0, comm),
          MPI_Recv(&number, count, type, nobody, 0, comm, MPI_STATUS_IGNORE),
          MPI_Sendrecv(&number, count, type, nobody, 0, nullptr, 0, MPI_INT, nobody, 0, comm, MPI_STATUS_IGNORE),
          MPI_Sendrecv(nullptr, 0, MPI_INT, nobody, 0, &number, count, type, nobody, 0, comm, MPI_STATUS_IGNORE)})
      all.push_back(error_class(code));
    return all;
  };
  EXPECT_EQ(std::vector<int>(4, MPI_SUCCESS), classes(1, MPI_INT));
  EXPECT_EQ(std::vector<int>(4, MPI_ERR_COUNT), classes(-1, MPI_INT));
  EXPECT_EQ(std::vector<int>(4, MPI_ERR_TYPE), classes(1, MPI_DATATYPE_NULL));
  MPI_Status status;
  MPI_Recv(&number, 1, MPI_INT, nobody, 0, comm, &status);
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT_EQ(nobody, status.MPI_SOURCE);
  EXPECT_EQ(int{MPI_ANY_TAG}, status.MPI_TAG);
  EXPECT_EQ(0, count);
  MPI_Comm_free(&comm);
}

TEST(Misuse, ComparisonsWithNoCommunicator) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_WORLD), returned_here(MPI_COMM_SELF);
  std::vector<MPI_Comm> handles(2);
  MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 2, MPI_INFO_NULL, handles.data());
  EXPECT_EQ(std::vector<int>(2, MPI_ERR_COMM), classes_of(handles, [](MPI_Comm comm) {
              int result = 0;
              return MPI_Comm_compare(comm, MPI_COMM_NULL, &result);
            }));
  const MPI_Comm freed = handles[1];
  MPI_Comm_free(&handles[1]);
  int result = 0;
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Comm_compare(handles[0], freed, &result)));
  EXPECT_EQ(MPI_ERR_COMM, error_class(MPI_Comm_compare(freed, handles[0], &result)));
  MPI_Comm_free(&handles[0]);
}

/// Each endpoint sends to itself alone, and names no datatype for what it does not send.
TEST(Misuse, DatatypesOfNothing) {
  if (!has_threads()) return;
  for (const bool is_blocking : {true, false}) {
    EXPECT_EQ(0, on_endpoints(each(2), [is_blocking](MPI_Comm comm) {
                const auto me = static_cast<std::size_t>(rank(comm)), all = static_cast<std::size_t>(size(comm));
                std::vector<int> counts(all, 0);
                const std::vector<int> places(all, 0);
                std::vector<MPI_Datatype> types(all, MPI_DATATYPE_NULL);
                counts[me] = 1;
                types[me] = MPI_INT;
                const int mine = rank(comm);
                int got = -1, code = MPI_SUCCESS;
                MPI_Request request = MPI_REQUEST_NULL;
                if (is_blocking) {
                  code = MPI_Alltoallw(&mine, counts.data(), places.data(), types.data(), &got, counts.data(),
                                       places.data(), types.data(), comm);
                } else {
                  code = MPI_Ialltoallw(&mine, counts.data(), places.data(), types.data(), &got, counts.data(),
                                        places.data(), types.data(), comm, &request);
                  MPI_Wait(&request, MPI_STATUS_IGNORE);
                }
                return (code != MPI_SUCCESS) + (got != mine);
              }));
  }
}

TEST(Misuse, TopologiesWithoutNumbers) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  MPI_Comm comm = MPI_COMM_NULL, grid = MPI_COMM_NULL, made = MPI_COMM_NULL;
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &comm);
  constexpr int one = 1, zero = 0;
  MPI_Cart_create(comm, 1, &one, &zero, 0, &grid);
  int rank = 0;
  for (const int code :
       {MPI_Cart_create(comm, 1, nullptr, &zero, 0, &made), MPI_Cart_rank(grid, nullptr, &rank),
        MPI_Cart_sub(grid, nullptr, &made), MPI_Graph_create(comm, 1, nullptr, &zero, 0, &made),
        MPI_Graph_create(comm, 1, &one, nullptr, 0, &made), MPI_Graph_map(comm, 1, nullptr, nullptr, &rank)})
    EXPECT_EQ(MPI_ERR_ARG, error_class(code));
  EXPECT_EQ(MPI_COMM_NULL, made);
  MPI_Comm_free(&grid);
  MPI_Comm_free(&comm);
}

TEST(Misuse, ResultsWithoutAPlace) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_SELF), returned_to_world(MPI_COMM_WORLD);
  MPI_Comm comm = MPI_COMM_NULL, grid = MPI_COMM_NULL, graph = MPI_COMM_NULL, weighted = MPI_COMM_NULL;
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &comm);
  constexpr int one = 1, zero = 0;
  MPI_Cart_create(comm, 1, &one, &zero, 0, &grid);
  MPI_Graph_create(comm, 1, &one, &zero, 0, &graph);
  MPI_Dist_graph_create_adjacent(comm, 1, &zero, &one, 1, &zero, &one, MPI_INFO_NULL, 0, &weighted);
  int flag = 0, number = 0, *bound = nullptr;
  MPI_Request request, requests[2];
  MPI_Irecv(nullptr, 0, MPI_INT, 0, 1, comm, &request);
  for (MPI_Request& one_of_two : requests) MPI_Irecv(nullptr, 0, MPI_INT, 0, 1, comm, &one_of_two);
  MPI_Group group, made = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  MPI_Message message;
  MPI_Send(&one, 1, MPI_INT, 0, 2, comm);
  MPI_Mprobe(0, 2, comm, &message, MPI_STATUS_IGNORE);
  const std::vector<int> codes{
      MPI_Comm_rank(comm, nullptr),
      MPI_Comm_size(comm, nullptr),
      MPI_Comm_compare(comm, comm, nullptr),
      MPI_Comm_get_attr(comm, MPI_TAG_UB, nullptr, &flag),
      MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&bound), nullptr),
      MPI_Comm_test_inter(comm, nullptr),
      MPI_Topo_test(comm, nullptr),
      MPI_Comm_split(comm, 0, 0, nullptr),
      MPI_Cart_create(comm, 1, &one, &zero, 0, nullptr),
      MPI_Cart_get(grid, 1, nullptr, nullptr, nullptr),
      MPI_Cart_coords(grid, 0, 1, nullptr),
      MPI_Iprobe(0, 0, comm, nullptr, MPI_STATUS_IGNORE),
      MPI_Improbe(0, 0, comm, nullptr, nullptr, MPI_STATUS_IGNORE),
      MPI_Mprobe(0, 0, comm, nullptr, MPI_STATUS_IGNORE),
      MPI_Test(&request, nullptr, MPI_STATUS_IGNORE),
      MPI_Request_get_status(request, nullptr, MPI_STATUS_IGNORE),
      MPI_Testall(2, requests, nullptr, MPI_STATUSES_IGNORE),
      MPI_Testany(2, requests, &number, nullptr, MPI_STATUS_IGNORE),
      MPI_Testany(2, requests, nullptr, &flag, MPI_STATUS_IGNORE),
      MPI_Testsome(2, requests, nullptr, &number, MPI_STATUSES_IGNORE),
      MPI_Testsome(2, requests, &number, nullptr, MPI_STATUSES_IGNORE),
      MPI_Waitany(2, requests, nullptr, MPI_STATUS_IGNORE),
      MPI_Waitsome(2, requests, nullptr, &number, MPI_STATUSES_IGNORE),
      MPI_Waitsome(2, requests, &number, nullptr, MPI_STATUSES_IGNORE),
      MPI_Imrecv(&number, 1, MPI_INT, &message, nullptr),
      MPI_Isend(&number, 1, MPI_INT, 0, 0, comm, nullptr),
      MPI_Ibarrier(comm, nullptr),
      MPI_Comm_dup(comm, nullptr),
      MPI_Comm_create(comm, group, nullptr),
      MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, nullptr),
      MPI_Comm_group(comm, nullptr),
      MPI_Cart_map(comm, 1, &one, &zero, nullptr),
      MPI_Cart_rank(grid, &zero, nullptr),
      MPI_Cart_shift(grid, 0, 1, nullptr, &number),
      MPI_Cart_shift(grid, 0, 1, &number, nullptr),
      MPI_Cart_sub(grid, &one, nullptr),
      MPI_Cartdim_get(grid, nullptr),
      MPI_Graph_create(comm, 1, &one, &zero, 0, nullptr),
      MPI_Graph_map(comm, 1, &one, &zero, nullptr),
      MPI_Graphdims_get(graph, &number, nullptr),
      MPI_Graph_get(graph, 1, 1, nullptr, &number),
      MPI_Graph_get(graph, 1, 1, &number, nullptr),
      MPI_Graph_neighbors_count(graph, 0, nullptr),
      MPI_Graph_neighbors(graph, 0, 1, nullptr),
      MPI_Dist_graph_create_adjacent(comm, 1, &zero, &one, 1, &zero, &one, MPI_INFO_NULL, 0, nullptr),
      MPI_Dist_graph_neighbors_count(weighted, &number, &number, nullptr),
      MPI_Dist_graph_neighbors(weighted, 1, nullptr, &number, 1, &number, &number),
      MPI_Dist_graph_neighbors(weighted, 1, &number, &number, 1, &number, nullptr),
      MPI_Group_size(group, nullptr),
      MPI_Group_rank(group, nullptr),
      MPI_Group_compare(group, group, nullptr),
      MPI_Group_translate_ranks(group, 1, &zero, group, nullptr),
      MPI_Group_incl(group, 1, &zero, nullptr),
      MPI_Group_union(MPI_GROUP_EMPTY, group, nullptr),
  };
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(MPI_ERR_ARG, error_class(codes[i])) << i;
  // Of nothing there need be no place.
  EXPECT_EQ(MPI_SUCCESS, MPI_Cart_get(grid, 0, nullptr, nullptr, nullptr));
  EXPECT_EQ(MPI_SUCCESS, MPI_Graph_get(graph, 1, 0, &number, nullptr));
  EXPECT_EQ(MPI_SUCCESS, MPI_Dist_graph_neighbors(weighted, 0, nullptr, nullptr, 1, &number, MPI_UNWEIGHTED));
  EXPECT_EQ(MPI_SUCCESS, MPI_Group_translate_ranks(group, 0, nullptr, group, nullptr));
  EXPECT_EQ(MPI_SUCCESS, MPI_Group_incl(group, 0, nullptr, &made));
  EXPECT_EQ(MPI_GROUP_EMPTY, made);
  EXPECT_EQ(MPI_SUCCESS, MPI_Mrecv(&number, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  EXPECT_EQ(1, number);
  for (int i = 0; i < 3; ++i) MPI_Send(nullptr, 0, MPI_INT, 0, 1, comm);
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  MPI_Group_free(&group);
  for (MPI_Comm* one_of_all : {&grid, &graph, &weighted}) MPI_Comm_free(one_of_all);
  MPI_Comm_free(&comm);
}

TEST(Misuse, ABroadcastThatIsTooLongIsTruncated) {
  if (!has_threads()) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  std::vector<MPI_Comm> handles(3);
  MPIX_Comm_create_endpoints(MPI_COMM_SELF, 3, MPI_INFO_NULL, handles.data());
  const std::vector<int> expected{MPI_ERR_TRUNCATE, MPI_SUCCESS, MPI_ERR_TRUNCATE};
  EXPECT_EQ(expected, classes_of(handles, [](MPI_Comm comm) {
              int numbers[4] = {1, 1, 1, 1};
              return MPI_Bcast(numbers, rank(comm) == 1 ? 4 : 2, MPI_INT, 1, comm);
            }));
  for (MPI_Comm& handle : handles) MPI_Comm_free(&handle);
}

}  // namespace
}  // namespace gapless::test
