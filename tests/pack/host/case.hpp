// A job of the host engine with what it must write: every implementation is compared with a plain loop over a type map.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "../../layout/random_datatype.hpp"
#include "pack/host/engine.hpp"
#include "sample.hpp"

namespace gapless::pack::testing {

using Bytes = std::vector<char>;

inline Bytes random_bytes(Random& random, std::size_t count) {
  Bytes bytes(count);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// Cuts [0, size) at random places.
inline std::vector<std::pair<Offset, Offset>> random_chunks(Random& random, Offset size) {
  std::vector<Offset> cuts{0, size};
  for (Offset i = pick(random, 0, 6); i > 0; --i) cuts.push_back(pick(random, 0, size));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::pair<Offset, Offset>> chunks;
  for (std::size_t i = 1; i < cuts.size(); ++i) chunks.emplace_back(cuts[i - 1], cuts[i]);
  return chunks;
}

struct Case {
  Sample sample;
  Mode outer;
  std::vector<std::pair<Offset, Offset>> chunks;
  Offset memory_shift, packed_shift;  ///< misalignment of both buffers

  Offset size() const { return static_cast<Offset>(sample.map.size()) * outer.count; }
  Offset where(Offset k) const {
    const Offset n = static_cast<Offset>(sample.map.size());
    return sample.map[static_cast<std::size_t>(k % n)] + k / n * outer.stride;
  }
};

inline constexpr Offset guard = 64;

/// Runs the case with every implementation and compares all of both buffers with a plain loop over the type map.
inline void check(const Case& test, Random& random) {
  Offset low = 0, high = 0;
  for (Offset k = 0; k < test.size(); ++k) {
    low = std::min(low, test.where(k));
    high = std::max(high, test.where(k) + 1);
  }
  const Offset origin = guard + test.memory_shift - low, start = guard + test.packed_shift;
  const Bytes memory = random_bytes(random, static_cast<std::size_t>(origin + high + guard));
  const Bytes packed = random_bytes(random, static_cast<std::size_t>(start + test.size() + guard));
  Bytes expected_packed = packed, expected_memory = memory;
  for (Offset k = 0; k < test.size(); ++k) {
    expected_packed[static_cast<std::size_t>(start + k)] = memory[static_cast<std::size_t>(origin + test.where(k))];
    expected_memory[static_cast<std::size_t>(origin + test.where(k))] = packed[static_cast<std::size_t>(start + k)];
  }
  for (const std::string_view name : host::implementations()) {
    ASSERT_TRUE(host::select_implementation(name));
    Bytes from = memory, to = packed;
    for (const auto& [begin, end] : test.chunks) {
      host::run(Job{test.sample.layout.get(), test.outer, begin, end, Direction::pack, from.data() + origin,
                    to.data() + start + begin});
    }
    ASSERT_EQ(from, memory) << name << " wrote to what it packs";
    ASSERT_EQ(to, expected_packed) << name << " packs wrongly";
    to = packed;
    for (const auto& [begin, end] : test.chunks) {
      host::run(Job{test.sample.layout.get(), test.outer, begin, end, Direction::unpack, from.data() + origin,
                    to.data() + start + begin});
    }
    ASSERT_EQ(to, packed) << name << " wrote to what it unpacks";
    ASSERT_EQ(from, expected_memory) << name << " unpacks wrongly";
  }
}

inline Case random_case(Random& random, Sample sample, Offset most_repetitions) {
  Case test{std::move(sample), {1, 0}, {}, pick(random, 0, 15), pick(random, 0, 15)};
  test.outer = {pick(random, 0, most_repetitions), random_stride(random, reach(test.sample))};
  if (pick(random, 0, 3) == 0) {
    // Repetitions that continue the layout's own outermost mode, or its one block.
    const layout::Layout& layout = *test.sample.layout;
    test.outer.stride =
        layout.modes.empty() ? layout.core_size : layout.modes.back().count * layout.modes.back().stride;
  }
  if (test.size() == 0) {
    test.chunks = {{0, 0}};
    return test;
  }
  test.chunks = random_chunks(random, test.size());
  // Where destinations overlap, only chunks in packed order have a defined result.
  if (is_injective(test.sample, test.outer)) std::shuffle(test.chunks.begin(), test.chunks.end(), random);
  return test;
}

/// Five blocks, which begin `shift` bytes into a line of memory and anywhere in one of the packed bytes.
inline Case long_blocks(Random& random, Offset length, Offset shift) {
  Case test{repeat(block(0, length), 5, 2 * length + shift), {1, 0}, {}, shift, pick(random, 0, 63)};
  test.chunks = random_chunks(random, test.size());
  return test;
}

}  // namespace gapless::pack::testing
