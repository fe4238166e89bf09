// What tests of messages between GPUs of a node have in common: messages of strided blocks, and whether they went
// direct.
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
#include "support/gpu.hpp"
#include "support/ints.hpp"
#include "support/layouts.hpp"
#include "support/statistics.hpp"

namespace gapless::test {

/// Does the simulated GPU refuse that in this run?
inline bool is_refused(const char* what) {
  const char* failures = std::getenv("GAPLESS_TEST_SIMULATED_FAIL");
  return failures != nullptr && std::string_view(failures).find(what) != std::string_view::npos;
}

/// Is gapless to go direct where it can, as it is told or as the model predicts?
inline bool is_to_go_direct() {
  const char* scheme = std::getenv("GAPLESS_SCHEME");
  return under_gapless() && (scheme == nullptr || std::string_view(scheme) == "direct");
}

/// Does gapless go direct, in a run where not all memory is refused that peers may map? Page-locked memory is asked for
/// where exporting or mapping GPU memory is refused.
inline bool goes_direct() { return is_to_go_direct() && !is_refused("lock"); }

struct Strided {
  explicit Strided(int blocks, int first = 1)
      : type(strided(blocks, length, stride)),
        values(counting(static_cast<std::size_t>(blocks * stride), first)),
        memory(values, true) {}
  std::vector<int> packed() const { return picked(values, static_cast<int>(values.size()) / stride, length, stride); }
  Owned type;
  std::vector<int> values;
  Ints memory;
};

/// `size` times -1, with what arrives in such blocks.
inline std::vector<int> arrived(const std::vector<int>& packed, std::size_t size) {
  return placed(std::vector<int>(size, -1), packed, length, stride);
}

/// Blocks of messages that go direct: 512 bytes, a segment of the pool, more, and three quarters of it.
inline const std::vector<int> block_counts{64, 1000, 1024, 20'000, 98'304};

/// Blocks of messages that the exported memory has no room for, so that they go through a ring of it: whole sections,
/// and a part of one.
inline const std::vector<int> long_block_counts{163'840, 140'001};

/// One message from rank 0 to rank 1 and so on. `direct`: how many messages are to have gone that way.
inline void pass(int blocks, const Send& by, const Receive& into, unsigned direct = 1,
                 MPI_Comm communicator = MPI_COMM_WORLD) {
  MPI_Barrier(communicator);
  if (!has_partner()) return;
  const int peer = rank(communicator) ^ 1;
  Strided message(blocks);
  const std::uint64_t before = direct_messages();
  if (sends()) {
    by(message.memory.data(), message.type, communicator, peer);
  } else {
    Ints incoming(std::vector<int>(message.values.size(), -1), true);
    MPI_Status status{};
    into(incoming.data(), message.type, communicator, peer, &status);
    expect_message(status, message.type, blocks, peer);
    EXPECT_TRUE(arrived(message.packed(), message.values.size()) == incoming.values());
  }
  EXPECT_EQ(before + (goes_direct() ? direct : 0), direct_messages());
}

/// Has partners find out that they can: one calls for the other's attention, has it, introduces its memory, and is
/// answered; where that is refused, introduces page-locked memory, and is answered. Each of the six may be a message
/// late, for the receive that would notice may be under way.
inline void introduce() {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!has_partner()) return;
  for (int times = 0; times < 8; ++times) {
    Strided message(128);
    Ints incoming(std::vector<int>(message.values.size(), -1), true);
    const auto go = [&](bool sending) {
      if (sending) send(message.memory.data(), message.type, MPI_COMM_WORLD, partner());
      if (!sending) receive(incoming.data(), message.type, MPI_COMM_WORLD, partner(), MPI_STATUS_IGNORE);
    };
    go(sends());
    go(!sends());
    EXPECT_EQ(arrived(message.packed(), message.values.size()), incoming.values());
  }
}

class Direct : public testing::Test {
 protected:
  Direct() { introduce(); }
  const ReturnErrors errors_{MPI_COMM_WORLD};
};

}  // namespace gapless::test
