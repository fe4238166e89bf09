// Programs reset their GPU between calls, each process when it likes: the next message goes through, of datatypes that
// were used before and by buffers that gapless kept.

#include <gtest/gtest.h>
#include <mpi.h>

#include <vector>

#include "support/environment.hpp"
#include "support/gpu.hpp"
#include "support/messages.hpp"
#include "support/types/library_defects.hpp"
#include "support/types/memory.hpp"
#include "support/types/type.hpp"

namespace gapless::test {
namespace {

struct Case {
  Type type;
  int count;
};

std::vector<Case> cases(Random& random) {
  std::vector<Case> result;
  const Type& real = predefined_types()[0];
  for (const int rows : {10, 3000, 60000}) {
    TypeMap map;
    for (int i = 0; i < rows; ++i) map.place(real.map(), 3 * i * real.map().extent);
    MPI_Datatype handle;
    MPI_Type_vector(rows, 1, 3, real.handle(), &handle);
    result.push_back({Type(handle, map, "vector"), 1});
    result.back().type.commit();
  }
  while (result.size() < 12) {
    Type type = random_type(random, random.between(1, 4));
    const std::vector<MPI_Aint> offsets = packed_offsets(type.map(), 2);
    if (!offsets.empty() && !overlaps(offsets) && library_packs_by_type_map(type, 2)) {
      result.push_back({std::move(type), 2});
    }
  }
  return result;
}

void expect_pack_and_message_work(const Case& used, Random& random) {
  const int partner = size() < 2 ? rank() : rank() ^ 1;
  const std::vector<MPI_Aint> offsets = packed_offsets(used.type.map(), used.count);
  const Memory source(offsets, random), target(offsets, random);
  OnGpu outgoing(source.bytes()), incoming(target.bytes()), packed(std::vector<std::byte>(offsets.size()));
  int position = 0;
  EXPECT_EQ(MPI_SUCCESS, MPI_Pack(outgoing.at(source.origin()), used.count, used.type.handle(), packed.at(),
                                  static_cast<int>(offsets.size()), &position, MPI_COMM_WORLD));
  EXPECT_TRUE(same_bytes(source.packed(offsets), packed.bytes()));
  EXPECT_EQ(MPI_SUCCESS, MPI_Sendrecv(outgoing.at(source.origin()), used.count, used.type.handle(), partner, 8,
                                      incoming.at(target.origin()), used.count, used.type.handle(), partner, 8,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  EXPECT_TRUE(same_bytes(target.after_unpacking(source.packed(offsets), offsets), incoming.bytes()));
}

TEST(DeviceReset, TheNextMessageGoesThrough) {
  Random random(seed());
  const std::vector<Case> all = cases(random);
  for (int round = 0; round < 5; ++round) {
    for (const Case& used : all) {
      SCOPED_TRACE(used.type.text() + ", round " + std::to_string(round));
      expect_pack_and_message_work(used, random);
    }
    // One process resets its GPU more often than the other.
    if (rank() % 2 == 0 || round % 2 == 0) reset_gpu();
  }
}

}  // namespace
}  // namespace gapless::test
