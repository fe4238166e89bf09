// Calls that are not served in GPU memory: a clear error where they would touch it, and none where they would not.

#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/layouts.hpp"

namespace gapless::test {
namespace {

/// A call that cannot take GPU memory says so: an error that names it, and the process goes on.
void expect_named_error(int code, const std::string& call) {
  EXPECT_NE(MPI_SUCCESS, code) << call;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Error_string(code, text, &length));
  const std::string message(text, static_cast<std::size_t>(length));
  EXPECT_NE(std::string::npos, message.find(call)) << message;
  EXPECT_NE(std::string::npos, message.find("GPU")) << message;
}

TEST(Guarded, CallsThatAreNotServedReturnAnErrorThatNamesThem) {
  ReturnErrors errors(MPI_COMM_WORLD);
  OnGpu memory(std::vector<std::byte>(1024));
  MPI_Win window = MPI_WIN_NULL;
  expect_named_error(MPI_Win_create(memory.at(), 512, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), "MPI_Win_create");
  // The library itself is none the worse for it.
  int one = 1;
  int sum = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  EXPECT_EQ(size(), sum);
}

/// A datatype that names host memory and a GPU's, whichever of them it names first, or lies lower.
TEST(Guarded, DatatypesOfHostAndGpuMemoryAtOnce) {
  ReturnErrors errors(MPI_COMM_WORLD);
  constexpr int bytes = 64;
  OnGpu memory{std::vector<std::byte>(bytes)};
  std::vector<char> heap(bytes), packed(3 * bytes);
  char stack[bytes] = {};
  void* const blocks[][3] = {{heap.data(), memory.at(), stack},
                             {memory.at(), heap.data(), nullptr},
                             {stack, memory.at(), nullptr},
                             {heap.data(), stack, memory.at()}};
  for (const auto& places : blocks) {
    const int count = places[2] != nullptr ? 3 : 2;
    const auto type_of_blocks = [&] {
      MPI_Aint addresses[3] = {};
      for (int k = 0; k < count; ++k) MPI_Get_address(places[k], &addresses[k]);
      MPI_Datatype type;
      MPI_Type_create_hindexed_block(count, bytes, addresses, MPI_BYTE, &type);
      return type;
    };
    const auto expect_error_of = [&](const char* name, auto call) {
      const Owned type(type_of_blocks());
      expect_named_error(call(type), name);
    };
    int place = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    expect_error_of("MPI_Send", [](MPI_Datatype t) { return MPI_Send(MPI_BOTTOM, 1, t, rank(), 7, MPI_COMM_WORLD); });
    expect_error_of("MPI_Recv", [](MPI_Datatype t) {
      return MPI_Recv(MPI_BOTTOM, 1, t, rank(), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    expect_error_of("MPI_Isend",
                    [&](MPI_Datatype t) { return MPI_Isend(MPI_BOTTOM, 1, t, rank(), 7, MPI_COMM_WORLD, &request); });
    expect_error_of("MPI_Pack", [&](MPI_Datatype t) {
      return MPI_Pack(MPI_BOTTOM, 1, t, packed.data(), 3 * bytes, &place, MPI_COMM_WORLD);
    });
    expect_error_of("MPI_Unpack", [&](MPI_Datatype t) {
      return MPI_Unpack(packed.data(), 3 * bytes, &place, MPI_BOTTOM, 1, t, MPI_COMM_WORLD);
    });
    expect_error_of("MPI_Bcast", [](MPI_Datatype t) { return MPI_Bcast(MPI_BOTTOM, 1, t, 0, MPI_COMM_WORLD); });
  }
}

TEST(Guarded, GpuMemoryThatIsNotTouchedIsNoError) {
  ReturnErrors errors(MPI_COMM_WORLD);
  OnGpu memory(std::vector<std::byte>(1024));
  MPI_Request requests[2];
  EXPECT_EQ(MPI_SUCCESS, MPI_Irecv(memory.at(), 0, MPI_INT, rank(), 9, MPI_COMM_WORLD, &requests[0]));
  EXPECT_EQ(MPI_SUCCESS, MPI_Isend(memory.at(), 0, MPI_INT, rank(), 9, MPI_COMM_WORLD, &requests[1]));
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  EXPECT_EQ(MPI_SUCCESS, MPI_Bcast(memory.at(), 0, MPI_INT, 0, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS, MPI_Allreduce(memory.at(), memory.at(512), 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

/// Count arrays decide where they are: for each process, or for each neighbour.
TEST(Guarded, GpuMemoryOfCollectivesWhoseCountsAreAllZeroIsNotTouched) {
  ReturnErrors errors(MPI_COMM_WORLD);
  OnGpu memory(std::vector<std::byte>(1024));
  const std::vector<int> none(static_cast<std::size_t>(size())), at(none.size());
  EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallv(memory.at(), none.data(), at.data(), MPI_INT, memory.at(512), none.data(),
                                       at.data(), MPI_INT, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Allgatherv(memory.at(), 0, MPI_INT, memory.at(512), none.data(), at.data(), MPI_INT, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Reduce_scatter(memory.at(), memory.at(512), none.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_SUCCESS, MPI_Ialltoallv(memory.at(), none.data(), at.data(), MPI_INT, memory.at(512), none.data(),
                                        at.data(), MPI_INT, MPI_COMM_WORLD, &request));
  EXPECT_EQ(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/// Between groups, of as many processes as the own group has: the array ends where the memory does.
TEST(Guarded, CountsOfAReductionAreThoseOfTheOwnGroup) {
  if (size() == 1) GTEST_SKIP() << "one process has no other group";
  const bool is_last = rank() == size() - 1;
  MPI_Comm group, both;
  MPI_Comm_split(MPI_COMM_WORLD, is_last ? 1 : 0, rank(), &group);
  MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, is_last ? 0 : size() - 1, 5, &both);
  int own = 0;
  MPI_Comm_size(both, &own);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(MAP_FAILED, pages);
  auto* const end = static_cast<std::byte*>(pages) + page;
  EXPECT_EQ(0, mprotect(end, page, PROT_NONE));
  OnGpu memory(std::vector<std::byte>(1024));
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Reduce_scatter(memory.at(), memory.at(512), reinterpret_cast<int*>(end) - own, MPI_INT, MPI_SUM, both));
  munmap(pages, 2 * page);
  MPI_Comm_free(&both);
  MPI_Comm_free(&group);
}

TEST(Guarded, CountsOfNeighboursDecideInNeighbourhoodCollectives) {
  OnGpu memory(std::vector<std::byte>(1024));
  // More neighbours than processes, and as many ends of edges on the torus as there are directions.
  const int dimensions[] = {size(), 1}, periodic[] = {1, 1};
  MPI_Comm torus;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periodic, 0, &torus);
  // In a chain every process but the last has one to send to, and every one but the first has one to receive from.
  const int before = rank() - 1, after = rank() + 1, weight = 1;
  MPI_Comm chain;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, before >= 0, &before, &weight, after < size(), &after, &weight,
                                 MPI_INFO_NULL, 0, &chain);
  const std::vector<int> at(8), none(8);
  std::vector<int> beyond = {0, 0, 0, 0, 7, 7, 7, 7};
  for (const MPI_Comm communicator : {torus, chain}) {
    ReturnErrors errors(communicator);
    if (communicator == chain) beyond = {0, 7, 7, 7, 7, 7, 7, 7};
    EXPECT_EQ(MPI_SUCCESS, MPI_Neighbor_alltoallv(memory.at(), beyond.data(), at.data(), MPI_INT, memory.at(512),
                                                  beyond.data(), at.data(), MPI_INT, communicator));
  }
  MPI_Comm_free(&chain);
  MPI_Comm_free(&torus);
}

/// Elsewhere the arguments mean nothing, so they are not looked at either.
TEST(Guarded, BuffersThatMatterAtTheRootOnlyAreNoErrorElsewhere) {
  ReturnErrors errors(MPI_COMM_WORLD);
  OnGpu memory(std::vector<std::byte>(1024));
  const int root = size() - 1;
  const bool at_root = rank() == root;
  std::vector<int> received(static_cast<std::size_t>(size())), ones(received.size(), 1), at = counting(size());
  const int mine = rank();
  const auto here = [&](void* significant) { return at_root ? significant : memory.at(); };
  int* const nothing = nullptr;
  EXPECT_EQ(MPI_SUCCESS, MPI_Gather(&mine, 1, MPI_INT, here(received.data()), 1, MPI_INT, root, MPI_COMM_WORLD));
  EXPECT_EQ(MPI_SUCCESS, MPI_Gatherv(&mine, 1, MPI_INT, here(received.data()), at_root ? ones.data() : nothing,
                                     at_root ? at.data() : nothing, MPI_INT, root, MPI_COMM_WORLD));
  EXPECT_TRUE(!at_root || received == counting(size()));
  int sum = -1;
  EXPECT_EQ(MPI_SUCCESS, MPI_Reduce(&mine, here(&sum), 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
  EXPECT_EQ(at_root ? size() * (size() - 1) / 2 : -1, sum);
  int scattered = -1;
  EXPECT_EQ(MPI_SUCCESS,
            MPI_Scatterv(here(received.data()), at_root ? ones.data() : nothing, at_root ? at.data() : nothing, MPI_INT,
                         &scattered, 1, MPI_INT, root, MPI_COMM_WORLD));
  EXPECT_EQ(rank(), scattered);
}

TEST(Guarded, FilesTakeEmptyBuffersOfAGpuInTwoSteps) {
  OnGpu memory(std::vector<std::byte>(1024));
  MPI_File file;
  char name[] = "/tmp/gapless-empty-XXXXXX";
  if (rank() == 0) close(mkstemp(name));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  EXPECT_EQ(MPI_SUCCESS,
            MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  EXPECT_EQ(MPI_SUCCESS, MPI_File_write_all_begin(file, memory.at(), 0, MPI_INT));
  EXPECT_EQ(MPI_SUCCESS, MPI_File_write_all_end(file, memory.at(), MPI_STATUS_IGNORE));
  EXPECT_EQ(MPI_SUCCESS, MPI_File_read_at_all_begin(file, 0, memory.at(), 0, MPI_INT));
  EXPECT_EQ(MPI_SUCCESS, MPI_File_read_at_all_end(file, memory.at(), MPI_STATUS_IGNORE));
  MPI_File_close(&file);
}

}  // namespace
}  // namespace gapless::test
