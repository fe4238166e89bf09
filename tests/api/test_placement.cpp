// Which engine gets a job, for every pair of memory kinds.
#include <gtest/gtest.h>

#include <cstring>

#include "api/placement.hpp"

namespace gapless::api {
namespace {

using device::Location;
using device::MemoryKind;

constexpr Location host{MemoryKind::host, -1}, pinned{MemoryKind::pinned, 0}, managed{MemoryKind::managed, 1},
    gpu0{MemoryKind::device, 0}, gpu1{MemoryKind::device, 1};

/// The GPU that gets the job, or -1 for the host engine; a refused job fails the test.
int engine_of(Location memory, Location packed) {
  Placement placement;
  EXPECT_EQ(place(memory, packed, "memory", "packed", placement), GAPLESS_SUCCESS) << gapless_last_error();
  return placement.on_gpu ? placement.device : -1;
}

gapless_status refusal_of(Location memory, Location packed) {
  Placement placement;
  return place(memory, packed, "memory", "packed", placement);
}

}  // namespace

TEST(Placement, HostMemoryOnBothSidesIsTheHostEngines) {
  for (const Location memory : {host, pinned}) {
    for (const Location packed : {host, pinned}) EXPECT_EQ(engine_of(memory, packed), -1);
  }
}

TEST(Placement, GpuMemoryIsMovedByItsGpu) {
  for (const Location other : {pinned, managed, gpu0}) {
    EXPECT_EQ(engine_of(gpu0, other), 0);
    EXPECT_EQ(engine_of(other, gpu0), 0);
  }
  EXPECT_EQ(engine_of(gpu1, gpu1), 1);
  EXPECT_EQ(engine_of(managed, managed), 1);
  EXPECT_EQ(engine_of(managed, pinned), 1);
  EXPECT_EQ(engine_of(pinned, managed), 1);
}

TEST(Placement, OrdinaryMemoryIsNotInStreamOrder) {
  for (const Location location : {gpu0, managed}) {
    EXPECT_EQ(refusal_of(location, host), GAPLESS_ERROR_MEMORY_KIND);
    EXPECT_EQ(std::strncmp(gapless_last_error(), "packed is ordinary", 18), 0) << gapless_last_error();
    EXPECT_EQ(refusal_of(host, location), GAPLESS_ERROR_MEMORY_KIND);
    EXPECT_EQ(std::strncmp(gapless_last_error(), "memory is ordinary", 18), 0) << gapless_last_error();
  }
}

TEST(Placement, OneCallIsForOneGpu) {
  EXPECT_EQ(refusal_of(gpu0, gpu1), GAPLESS_ERROR_UNSUPPORTED);
  EXPECT_STREQ(gapless_last_error(), "memory of GPU 0 and of GPU 1 in one call");
}

TEST(Placement, ABatchTakesTheGpuOfTheJobThatIsBound) {
  Placement whole;
  EXPECT_EQ(merge(placement_of(host), whole), GAPLESS_SUCCESS);
  EXPECT_FALSE(whole.on_gpu);
  EXPECT_EQ(merge(placement_of(managed), whole), GAPLESS_SUCCESS);
  EXPECT_EQ(whole.device, 1);
  EXPECT_EQ(merge(placement_of(gpu0), whole), GAPLESS_SUCCESS);
  EXPECT_EQ(merge(placement_of(managed), whole), GAPLESS_SUCCESS);
  EXPECT_EQ(whole.device, 0);
  EXPECT_EQ(merge(placement_of(gpu1), whole), GAPLESS_ERROR_UNSUPPORTED);
  EXPECT_EQ(whole.device, 0);
}

}  // namespace gapless::api
