// Starts and completions of persistent messages ask for no heap memory, whatever memory the messages are in.

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/allocations.hpp"
#include "support/environment.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {
namespace {

int before() { return (rank() + size() - 1) % size(); }
int after() { return (rank() + 1) % size(); }

constexpr int short_ints = 300, many_rounds = 2'000;

/// Heap memory asked for by `work` in all but its first rounds.
template <class Work>
std::uint64_t allocations_of(Work work) {
  std::uint64_t before_all = 0;
  for (int round = 0; round < many_rounds; ++round) {
    if (round == 100) before_all = allocations();
    work();
  }
  return allocations() - before_all;
}

std::uint64_t allocations_of_starts(void* outgoing, void* incoming, MPI_Datatype type) {
  MPI_Request requests[2];
  MPI_Recv_init(incoming, 1, type, before(), 1, MPI_COMM_WORLD, requests);
  MPI_Send_init(outgoing, 1, type, after(), 1, MPI_COMM_WORLD, requests + 1);
  int failed = 0;
  const std::uint64_t result = allocations_of([&] {
    failed += MPI_Startall(2, requests) != MPI_SUCCESS;
    failed += MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS;
  });
  EXPECT_EQ(0, failed);
  MPI_Request_free(requests);
  MPI_Request_free(requests + 1);
  return result;
}

/// The simulated GPU asks for some for each kernel.
std::uint64_t allocations_of_kernels(void* outgoing, void* incoming, MPI_Datatype type) {
  std::vector<int> packed(short_ints);
  const int bytes = static_cast<int>(short_ints * sizeof(int));
  return allocations_of([&] {
    int position = 0;
    MPI_Pack(outgoing, 1, type, packed.data(), bytes, &position, MPI_COMM_WORLD);
    position = 0;
    MPI_Unpack(packed.data(), bytes, &position, incoming, 1, type, MPI_COMM_WORLD);
  });
}

/// The same of copies out of GPU memory, as what comes direct to host memory takes.
std::uint64_t allocations_of_copies(void* on_gpu) {
  std::vector<int> packed(short_ints);
  const int bytes = static_cast<int>(short_ints * sizeof(int));
  return allocations_of([&] {
    int position = 0;
    MPI_Pack(on_gpu, short_ints, MPI_INT, packed.data(), bytes, &position, MPI_COMM_WORLD);
  });
}

TEST(Persistent, StartsAllocateNothing) {
  const WithoutTrials none_are_left;  // to the library, which may allocate what it likes
  const Owned type(strided(short_ints, 1, 3)), none(strided(1, short_ints, short_ints));
  std::vector<int> values(short_ints), place(short_ints);
  const std::uint64_t library = allocations_of_starts(values.data(), place.data(), none);
  for (const Ends& ends : all_ends()) {
    SCOPED_TRACE(text(ends));
    const std::vector<int> sent = counting(3 * short_ints), empty(sent.size(), -1);
    Ints outgoing(sent, ends.from_gpu), incoming(empty, ends.to_gpu);
    const auto packed_before = packed_messages(), direct_before = direct_messages();
    const std::uint64_t starts = allocations_of_starts(outgoing.data(), incoming.data(), type);
    EXPECT_EQ(placed(empty, picked(sent, short_ints, 1, 3), 1, 3), incoming.values());
    if (is_everything_packed()) {
      EXPECT_EQ(packed_before + 2 * many_rounds, packed_messages());
    }
    const bool are_copied = ends.from_gpu && !ends.to_gpu && direct_messages() > direct_before;
    std::uint64_t kernels = ends.from_gpu || ends.to_gpu
                                ? allocations_of_kernels(outgoing.data(), incoming.data(), type)
                                : std::uint64_t{0};
    if (are_copied) kernels += allocations_of_copies(outgoing.data());
    // What a copy asks for is not known where the library makes those of MPI_Pack.
    if (under_gapless() && !(are_copied && library_reads_gpu())) {
      // The library's pools may still grow, now and then.
      EXPECT_LE(starts, library + kernels + many_rounds / 100);
    }
  }
}

}  // namespace
}  // namespace gapless::test
