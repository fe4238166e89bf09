// Where the endpoints of one process meet in a collective: each has a seat, which it alone writes and the others read.
//
// A collective is one or more turns. An endpoint that takes a turn shows the others what it has put on its seat; they
// wait until it has taken as many turns as they. Every endpoint takes the same turns in the same order, so a number
// a seat is all that they need: no lock, no message. What a seat shows stays until its endpoint's next turn.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gapless::mpi::endpoints {

struct alignas(128) Seat {
  std::atomic<std::uint64_t> turns{0};
  int code = MPI_SUCCESS;
  const void* memory = nullptr;  ///< a buffer of the endpoint, of `count` elements
  MPI_Count count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  std::atomic<int> failure{MPI_SUCCESS};  ///< of who could not copy from the buffer, the last one's
  alignas(16) std::byte inside[16];  ///< a very short operand, which comes with the line that says that it is there
};

/// What the leader, the endpoint with local index 0, tells the others of its process.
struct alignas(128) Release {
  std::atomic<std::uint64_t> turns{0};
  int code = MPI_SUCCESS;
  alignas(16) std::byte inside[48];  ///< a very short result
};

/// Longer operands of a reduction are combined by all endpoints, a slice each.
inline constexpr MPI_Count most_combined_by_leader = 8192;

/// The leader copies what its process gives to others and gets from them, so that pays for short parts only.
inline constexpr MPI_Count most_bytes_by_leader = 64 << 10;

struct Seats {
  Seats(std::size_t locals, std::size_t processes)
      : all(new Seat[locals]), count(static_cast<int>(locals)), counts(processes), places(processes) {
    if (processes < 2) return;
    for (auto& room : gathered) room.reset(new std::byte[most_bytes_by_leader]);
  }

  std::unique_ptr<Seat[]> all;
  int count;
  Release release;
  /// What the leader has combined or gathered. It writes there once all others have come to its next turn, so all have
  /// read what was there.
  alignas(64) std::byte combined[most_combined_by_leader];
  std::byte* target = nullptr;      ///< where all combine what is longer
  std::vector<int> counts, places;  ///< of bytes, by process, as the library's collectives take them
  /// What goes to other processes and comes from them, `most_bytes_by_leader` each; null where there are none. There
  /// from the start, for a leader without memory could not tell the other processes' leaders.
  std::array<std::unique_ptr<std::byte[]>, 2> gathered;
};

}  // namespace gapless::mpi::endpoints
