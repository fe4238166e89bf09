// Communicators with processes of another job. Open MPI's launcher has no room for more processes than it has started.

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/ints.hpp"

#if !defined(OPEN_MPI)

namespace gapless::test {
namespace {

constexpr int none = -1;

/// With a process of another job, which does not run gapless and votes for nothing.
TEST(Strangers, TakePartInExchangesAndWindows) {
  MPI_Comm others = MPI_COMM_NULL, all;
  MPI_Comm_get_parent(&others);
  const bool is_spawned = others != MPI_COMM_NULL;
  if (!is_spawned && (rank() != 0 || !under_gapless())) GTEST_SKIP() << "one process under gapless does for all";
  if (!is_spawned) {
    char program[4096] = {};
    EXPECT_LT(0, readlink("/proc/self/exe", program, sizeof program - 1));
    std::string words[] = {"-u", "LD_PRELOAD", "-u", "GAPLESS_TEST_EXPECT", program, "--gtest_filter=Strangers.*"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    MPI_Comm_spawn("env", arguments.data(), 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &others, MPI_ERRCODES_IGNORE);
  }
  MPI_Intercomm_merge(others, is_spawned, &all);
  Ints out({10, 11}, !is_spawned), in({none, none}, !is_spawned);
  const int mine = is_spawned ? 1 : 0, ones[] = {1, 1}, places[] = {0, sizeof(int)};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  EXPECT_EQ(MPI_SUCCESS, MPI_Alltoallw(out.data(), ones, places, types, in.data(), ones, places, types, all));
  EXPECT_EQ(std::vector<int>(2, 10 + mine), in.values());
  int memory = 0;
  MPI_Win window;
  EXPECT_EQ(MPI_SUCCESS, MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, all, &window));
  MPI_Win_free(&window);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&others);
}

}  // namespace
}  // namespace gapless::test

#endif
