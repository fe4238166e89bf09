// Hashes that processes compare, some of them of another build of gapless.
#include <gtest/gtest.h>

#include <string_view>

#include "base/hash.hpp"

namespace gapless {
namespace {

/// Of the algorithm's own test vectors.
TEST(Hash, OfBytesIsFnv1a) {
  EXPECT_EQ(0xcbf29ce484222325u, hash_of(""));
  EXPECT_EQ(0xaf63dc4c8601ec8cu, hash_of("a"));
  EXPECT_EQ(0x85944171f73967e8u, hash_of("foobar"));
  EXPECT_EQ(0xaf63bd4c8601b7dfu, hash_of(std::string_view("\0", 1)));
}

TEST(Hash, GoesOnWithTheBytesThatFollow) { EXPECT_EQ(hash_of("foobar"), hash_of("bar", hash_of("foo"))); }

TEST(Hash, OfBytesTakesThemAsUnsigned) { EXPECT_EQ(0xaf64724c8602eb6eu, hash_of("\xff")); }

}  // namespace
}  // namespace gapless
