// What the tests of slots share: one message, and whether it has gone by slots.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "headers/partners.hpp"
#include "support/environment.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {

/// Is gapless under this test, and told to use slots?
inline bool uses_slots() { return is_told_to_use("slots"); }

/// May the model choose slots?
inline bool may_choose_slots() {
  const char* headers = std::getenv("GAPLESS_HEADERS");
  const bool are_spoken = headers == nullptr || std::string_view(headers) != "0";
  return under_gapless() && std::getenv("GAPLESS_SCHEME") == nullptr && are_spoken;
}

struct Strided {
  explicit Strided(int blocks)
      : type(strided(blocks, length, stride)), values(counting(static_cast<std::size_t>(blocks * stride), 1)) {}
  std::vector<int> packed(int blocks) const { return picked(values, blocks, length, stride); }
  Owned type;
  std::vector<int> values;
};

/// Blocks of messages that go by slots: one slot, a part of one, several.
inline const std::vector<int> block_counts{128, 1000, 4096, 20'000, 131'072};

/// One message from rank 0 to rank 1 and so on. `slots`: how many messages a rank is to have sent or received that way;
/// negative: not asked.
inline void pass(int blocks, const Send& by, const Receive& into, MPI_Comm communicator = MPI_COMM_WORLD,
                 int slots = 1) {
  // Both processes have started, and the slots of the last message are free.
  MPI_Barrier(communicator);
  if (!has_partner()) return;
  const int peer = rank(communicator) ^ 1;
  const Strided message(blocks);
  const std::uint64_t before = slots_messages();
  if (sends()) {
    by(message.values.data(), message.type, communicator, peer);
  } else {
    std::vector<int> incoming(message.values.size(), -1);
    MPI_Status status{};
    into(incoming.data(), message.type, communicator, peer, &status);
    expect_message(status, message.type, blocks, peer);
    EXPECT_TRUE(placed(std::vector<int>(message.values.size(), -1), message.packed(blocks), length, stride) ==
                incoming);
  }
  if (uses_slots() && slots >= 0) {
    EXPECT_EQ(before + static_cast<unsigned>(slots), slots_messages());
  }
}

}  // namespace gapless::test
