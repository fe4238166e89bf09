// Copies by one kind of instruction: every length and alignment, and nothing beside.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "pack/host/string_copy.hpp"

namespace gapless::tests {
namespace {

void expect_copies(void (*copy)(std::byte*, const std::byte*, std::size_t) noexcept) {
  constexpr std::size_t most = 300, room = most + 128;
  constexpr std::byte untouched{0xA5};
  std::vector<std::byte> from(room);
  for (std::size_t i = 0; i < room; ++i) from[i] = static_cast<std::byte>(i * 31 / 7);
  for (std::size_t bytes = 0; bytes <= most; ++bytes) {
    const std::size_t begin = 1 + bytes % 64, source = bytes % 17;
    std::vector<std::byte> to(room, untouched);
    copy(to.data() + begin, from.data() + source, bytes);
    for (std::size_t i = 0; i < room; ++i) {
      const bool is_inside = i >= begin && i < begin + bytes;
      ASSERT_EQ(is_inside ? from[source + i - begin] : untouched, to[i]) << bytes << " bytes, at " << i;
    }
  }
}

TEST(StringCopy, CopiesEveryLength) {
  if (!pack::host::has_string_copy()) GTEST_SKIP() << "this CPU has no fast string instructions";
  expect_copies(pack::host::string_copy);
}

TEST(OrdinaryCopy, CopiesEveryLength) { expect_copies(pack::host::ordinary_copy); }

}  // namespace
}  // namespace gapless::tests
