// What programs without GoogleTest's main, which end in the middle of messages, look at in a strided message.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace gapless::test {

/// Of every `stride` ints the first `length` are their own places, the others are -1; else the process ends in failure.
inline void expect_strided(const std::vector<int>& incoming, int length, int stride) {
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    const int wanted = static_cast<int>(i) % stride < length ? static_cast<int>(i) : -1;
    if (incoming[i] == wanted) continue;
    std::fprintf(stderr, "failed: int %zu is %d instead of %d\n", i, incoming[i], wanted);
    std::_Exit(1);
  }
}

}  // namespace gapless::test
