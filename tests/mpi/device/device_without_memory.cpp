// A process that has no memory to stage GPU data in enters the collective call all the same, then has its error: the
// others, who would wait for it, get what they get from one another. Of a file such a process reads and writes nothing.

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support/allocations.hpp"
#include "support/files.hpp"
#include "support/same_as_on_host.hpp"

namespace gapless::test {
namespace {

// Nothing is kept in pools, so that every packed buffer is asked for. Read by gapless when MPI is initialised.
const int no_pools = setenv("GAPLESS_POOL_BYTES", "0", 1);

constexpr int count = 1 << 14;
constexpr std::size_t long_buffer = count * sizeof(int);

/// So many ints, each of which tells its process and its place.
std::vector<std::byte> field(int parts, int first) {
  const std::vector<int> values = counting(static_cast<std::size_t>(parts) * count, first);
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {bytes, bytes + values.size() * sizeof(int)};
}

std::vector<std::byte> part_of(const std::vector<std::byte>& bytes, int part) {
  const auto first = bytes.begin() + part * static_cast<std::ptrdiff_t>(long_buffer);
  return {first, first + static_cast<std::ptrdiff_t>(long_buffer)};
}

enum class Way { blocking, nonblocking, persistent };
constexpr Way ways[] = {Way::blocking, Way::nonblocking, Way::persistent};

using Blocking = std::function<int(void*, void*)>;
using Starting = std::function<int(void*, void*, MPI_Request*)>;

/// A collective call in its three forms.
struct Collective {
  const char* name;
  Blocking call;
  Starting start, init;

  /// The code of the call, or of what completes it, which may be the call that starts it.
  int run(Way way, void* sent, void* received) const {
    if (way == Way::blocking) return call(sent, received);
    MPI_Request request = MPI_REQUEST_NULL;
    if (way == Way::nonblocking) {
      const int code = start(sent, received, &request);
      return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
    }
    EXPECT_EQ(MPI_SUCCESS, init(sent, received, &request));
    int code = MPI_SUCCESS;
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(MPI_SUCCESS, MPI_Start(&request));
      code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    EXPECT_EQ(MPI_SUCCESS, MPI_Request_free(&request));
    return code;
  }
};

#define GAPLESS_COLLECTIVE(name, ...)                                                                                \
  Collective {                                                                                                       \
    "MPI_" #name, [=, this]([[maybe_unused]] void* s, [[maybe_unused]] void* r) { return MPI_##name(__VA_ARGS__); }, \
        [=, this]([[maybe_unused]] void* s, [[maybe_unused]] void* r, MPI_Request* q) {                              \
          return MPI_I##name(__VA_ARGS__, q);                                                                        \
        },                                                                                                           \
        [=, this]([[maybe_unused]] void* s, [[maybe_unused]] void* r, MPI_Request* q) {                              \
          return MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, q);                                                   \
        }                                                                                                            \
  }
// The nonblocking functions' names have a small letter after the I.
#define MPI_IAlltoall MPI_Ialltoall
#define MPI_IAlltoallw MPI_Ialltoallw
#define MPI_IAllgather MPI_Iallgather
#define MPI_IBcast MPI_Ibcast
#define MPI_IAllreduce MPI_Iallreduce
#define MPI_INeighbor_alltoallw MPI_Ineighbor_alltoallw

class WithoutMemory : public testing::Test {
 protected:
  ReturnErrors errors_{MPI_COMM_WORLD};
  MPI_Comm world_ = MPI_COMM_WORLD;

  /// Runs the call with one process after the other short of memory. The others see `theirs` from each of them.
  void one_by_one(const Collective& collective,
                  const std::function<void(int poor, const std::vector<std::byte>&)>& look) {
    for (const Way way : ways) {
      for (int poor = 0; poor < size(); ++poor) {
        SCOPED_TRACE(std::string(collective.name) + ", way " + std::to_string(static_cast<int>(way)) + ", without " +
                     std::to_string(poor));
        OnGpu sent(field(size(), 1000 * rank())), received(field(size(), -1 - 1000 * rank()));
        int code = MPI_SUCCESS;
        if (rank() == poor) {
          const NoAlignedMemory none(long_buffer / 2);
          code = collective.run(way, sent.at(), received.at());
          EXPECT_EQ(MPI_ERR_NO_MEM, error_class(code));
          EXPECT_TRUE(same_bytes(field(size(), -1 - 1000 * rank()), received.bytes()));
        } else {
          code = collective.run(way, sent.at(), received.at());
          EXPECT_EQ(MPI_SUCCESS, code);
          look(poor, received.bytes());
        }
        EXPECT_TRUE(same_bytes(field(size(), 1000 * rank()), sent.bytes()));
      }
    }
  }
};

TEST_F(WithoutMemory, OthersGetWhatOthersSend) {
  one_by_one(GAPLESS_COLLECTIVE(Allgather, s, count, MPI_INT, r, count, MPI_INT, world_),
             [](int poor, const std::vector<std::byte>& got) {
               for (int k = 0; k < size(); ++k) {
                 if (k != poor) {
                   EXPECT_TRUE(same_bytes(field(1, 1000 * k), part_of(got, k)));
                 }
               }
             });
  one_by_one(GAPLESS_COLLECTIVE(Alltoall, s, count, MPI_INT, r, count, MPI_INT, world_),
             [](int poor, const std::vector<std::byte>& got) {
               for (int k = 0; k < size(); ++k) {
                 if (k != poor) {
                   EXPECT_TRUE(same_bytes(field(1, 1000 * k + rank() * count), part_of(got, k)));
                 }
               }
             });
}

TEST_F(WithoutMemory, OfDatatypesOfTheirOwn) {
  const auto processes = static_cast<std::size_t>(size());
  const Owned gaps(strided(count / 2, 1, 2));
  const std::vector<int> ones(processes, 1);
  const std::vector<MPI_Datatype> types(processes, gaps);
  std::vector<int> places;
  for (int k = 0; k < size(); ++k) places.push_back(k * static_cast<int>(long_buffer));
  const int *n = ones.data(), *at = places.data();
  const MPI_Datatype* t = types.data();
  one_by_one(GAPLESS_COLLECTIVE(Alltoallw, s, n, at, t, r, n, at, t, world_),
             [](int poor, const std::vector<std::byte>& got) {
               for (int k = 0; k < size(); ++k) {
                 if (k == poor) continue;
                 std::vector<std::byte> wanted = part_of(field(size(), -1 - 1000 * rank()), k);
                 const std::vector<std::byte> theirs = field(1, 1000 * k + rank() * count);
                 for (std::size_t i = 0; i < wanted.size(); i += 8) std::copy_n(&theirs[i], 4, &wanted[i]);
                 EXPECT_TRUE(same_bytes(wanted, part_of(got, k)));
               }
             });
}

TEST_F(WithoutMemory, ARootOrAnother) {
  const int root = size() - 1;
  one_by_one(GAPLESS_COLLECTIVE(Bcast, rank() == root ? s : r, count, MPI_INT, root, world_),
             [root](int poor, const std::vector<std::byte>& got) {
               if (poor != root && rank() != root) {
                 EXPECT_TRUE(same_bytes(field(1, 1000 * root), part_of(got, 0)));
               }
             });
}

TEST_F(WithoutMemory, OfReductions) {
  // What is combined is no good without one of the operands, but everybody returns. Sums may need no memory of the
  // host.
  one_by_one(GAPLESS_COLLECTIVE(Allreduce, s, r, count, MPI_INT, MPI_BXOR, world_),
             [](int, const std::vector<std::byte>&) {});
}

TEST_F(WithoutMemory, OfNeighbours) {
  if (size() == 1) GTEST_SKIP() << "one process has no neighbours in a ring";
  const int dimensions[] = {size()}, periodic[] = {1}, ones[] = {1, 1};
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periodic, 0, &ring);
  MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
  const Owned gaps(strided(count / 2, 1, 2));
  const MPI_Aint places[] = {0, static_cast<MPI_Aint>(long_buffer)};
  const MPI_Datatype types[] = {gaps, gaps};
  const int* n = ones;
  const MPI_Aint* at = places;
  const MPI_Datatype* t = types;
  one_by_one(GAPLESS_COLLECTIVE(Neighbor_alltoallw, s, n, at, t, r, n, at, t, ring),
             [](int, const std::vector<std::byte>&) {});
  MPI_Comm_free(&ring);
}

/// Not even what describes the call's parts. What a thread keeps for that is with requests that live.
TEST_F(WithoutMemory, ForTheListOfParts) {
  for (int poor = 0; poor < size(); ++poor) {
    OnGpu sent(field(size(), 1000 * rank())), received(field(size(), -1));
    MPI_Request requests[2];
    for (MPI_Request& request : requests)
      MPI_Allreduce_init(sent.at(), received.at(), count, MPI_INT, MPI_BXOR, world_, MPI_INFO_NULL, &request);
    if (rank() == poor) refuse_next_allocation();
    const int code = MPI_Allreduce(sent.at(), received.at(), count, MPI_INT, MPI_BXOR, world_);
    EXPECT_EQ(rank() == poor ? MPI_ERR_NO_MEM : MPI_SUCCESS, error_class(code));
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  }
}

TEST_F(WithoutMemory, NothingGoesToAFile) {
  const std::string path = "/tmp/gapless.without_memory." + std::to_string(getppid()) + "." + std::to_string(size());
  std::string shared = path;
  shared.resize(128);
  MPI_Bcast(shared.data(), 128, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int poor = 0; poor < size(); ++poor) {
    MPI_File file;
    EXPECT_EQ(MPI_SUCCESS,
              MPI_File_open(MPI_COMM_WORLD, shared.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    const MPI_Offset mine = rank() * static_cast<MPI_Offset>(long_buffer);
    const std::vector<std::byte> before = field(1, 7), written = field(1, 1000 * rank());
    MPI_File_write_at_all(file, mine, before.data(), count, MPI_INT, MPI_STATUS_IGNORE);
    OnGpu memory(written);
    const auto expect = [&](int code) { EXPECT_EQ(rank() == poor ? MPI_ERR_NO_MEM : MPI_SUCCESS, error_class(code)); };
    const auto as_poor = [&](const std::function<int()>& call) {
      if (rank() != poor) return call();
      const NoAlignedMemory none(long_buffer / 2);
      return call();
    };
    expect(as_poor([&] { return MPI_File_write_at_all(file, mine, memory.at(), count, MPI_INT, MPI_STATUS_IGNORE); }));
    expect(as_poor([&] { return MPI_File_write_at(file, mine, memory.at(), count, MPI_INT, MPI_STATUS_IGNORE); }));
    expect(as_poor([&] {
      const int code = MPI_File_write_at_all_begin(file, mine, memory.at(), count, MPI_INT);
      EXPECT_EQ(MPI_SUCCESS, code);
      return MPI_File_write_at_all_end(file, memory.at(), MPI_STATUS_IGNORE);
    }));
    MPI_File_sync(file);
    std::vector<std::byte> there(long_buffer);
    MPI_File_read_at_all(file, mine, there.data(), count, MPI_INT, MPI_STATUS_IGNORE);
    EXPECT_TRUE(same_bytes(rank() == poor ? before : written, there));
    MPI_File_close(&file);
  }
  if (rank() == 0) MPI_File_delete(shared.c_str(), MPI_INFO_NULL);
}

/// The library would write to the GPU's memory.
TEST_F(WithoutMemory, NoBufferOfTheGpuIsAttached) {
  constexpr int bytes = 4096 + MPI_BSEND_OVERHEAD;
  OnGpu memory{std::vector<std::byte>(bytes)};
  const ReturnErrors errors(MPI_COMM_SELF);
  {
    const NoNew refused(0);
    EXPECT_EQ(MPI_ERR_NO_MEM, error_class(MPI_Buffer_attach(memory.at(), bytes)));
  }
  ASSERT_EQ(MPI_SUCCESS, MPI_Buffer_attach(memory.at(), bytes));
  void* address = nullptr;
  int length = 0;
  ASSERT_EQ(MPI_SUCCESS, MPI_Buffer_detach(&address, &length));
  EXPECT_EQ(memory.at(), address);
}

/// Not even one piece of a call that would go in pieces, which is left whole to nobody.
TEST_F(WithoutMemory, NothingOfALongCallGoesToAFile) {
  const File file(MPI_COMM_SELF);
  constexpr int parts = 64;
  const std::vector<std::byte> bytes = field(parts, 0);
  OnGpu memory(bytes);
  {
    const NoAlignedMemory none(long_buffer / 2);
    for (const bool writes : {true, false}) {
      const int code = writes ? MPI_File_write_at(file, 0, memory.at(), parts * count, MPI_INT, MPI_STATUS_IGNORE)
                              : MPI_File_read_at(file, 0, memory.at(), parts * count, MPI_INT, MPI_STATUS_IGNORE);
      EXPECT_EQ(MPI_ERR_NO_MEM, error_class(code));
    }
  }
  EXPECT_TRUE(file.bytes().empty());
  EXPECT_TRUE(same_bytes(bytes, memory.bytes()));
  EXPECT_EQ(MPI_SUCCESS, MPI_File_write_at(file, 0, memory.at(), parts * count, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_TRUE(same_bytes(bytes, file.bytes()));
}

}  // namespace
}  // namespace gapless::test
