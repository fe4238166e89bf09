// Windows of long messages in GPU memory, all under way at once: the right bytes, and no page-locked memory for
// messages that come by header.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "headers/partners.hpp"
#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

constexpr std::size_t ints = 600'000;

std::vector<int> values(std::size_t of_message) { return counting(ints, 1'000'000 * static_cast<int>(of_message)); }

/// So many messages, of which the receives are posted first.
void pass(std::size_t messages, bool may_lock) {
  std::deque<Ints> memory;
  for (std::size_t k = 0; k < messages; ++k) memory.emplace_back(sends() ? values(k) : std::vector<int>(ints), true);
  const bool counts = !may_lock && gpu_fails_on_request() && under_gapless();
  const std::size_t before = counts ? gpu_bytes_in_use() : 0;
  std::vector<MPI_Request> requests(messages);
  for (std::size_t k = 0; k < messages && !sends(); ++k)
    MPI_Irecv(memory[k].data(), static_cast<int>(ints), MPI_INT, partner(), tag, MPI_COMM_WORLD, &requests[k]);
  if (counts) {
    EXPECT_LT(gpu_bytes_in_use(), before + ints * sizeof(int)) << "but for a segment";
  }
  MPI_Sendrecv(nullptr, 0, MPI_INT, partner(), tag + 1, nullptr, 0, MPI_INT, partner(), tag + 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (std::size_t k = 0; k < messages && sends(); ++k)
    MPI_Isend(memory[k].data(), static_cast<int>(ints), MPI_INT, partner(), tag, MPI_COMM_WORLD, &requests[k]);
  EXPECT_EQ(MPI_SUCCESS, MPI_Waitall(static_cast<int>(messages), requests.data(), MPI_STATUSES_IGNORE));
  for (std::size_t k = 0; k < messages; ++k) EXPECT_TRUE(values(k) == memory[k].values()) << k;
}

TEST(Windows, OfLongMessagesLockNoPagesWhereHeadersCome) {
  if (!has_partner()) GTEST_SKIP() << "needs two processes";
  pass(1, true);  // the processes find each other
  pass(8, false);
  pass(8, false);
}

}  // namespace
}  // namespace gapless::test
