// Messages that the library has matched for this process, and the program has not received yet.
//
// A header has the wrong size, and a probe must tell the message's own. So a message of a header's length is taken out
// of the library to be looked at, and put back as a message of the process to itself on the private communicator: the
// program gets a message of the library's, and the status it gets is put right.
//
// MPI_Probe leaves its message to the next receive, so what is taken out for it is *stashed* here, with all that the
// same process has sent before: a receive of any tag must find the oldest. While nothing is stashed, receives pay one
// load.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::headers {

/// A matched message: the handle to receive it by, and what the program is told of it.
struct Matched {
  MPI_Message handle{};
  MPI_Comm communicator{};
  MPI_Status status{};        ///< with the message's own size
  std::uint64_t number = 0;   ///< of those that have been stashed: the order in which the library has matched them
  bool was_stashed = false;   ///< the program receives it by another call than it knows
  bool was_put_back = false;  ///< the library tells of another source and tag
};

namespace internal {
extern std::atomic<std::size_t> stashed;
}

// Tags of the private communicator: messages that were put back, and one for others. Every library has so many.
inline constexpr int put_back_tags = 32766, tag_of_parts = put_back_tags;

/// Is anything stashed?
inline bool are_stashed() noexcept { return internal::stashed.load(std::memory_order_relaxed) != 0; }

/// Takes the oldest stashed message that such a receive matches.
std::optional<Matched> take_stashed(int source, int tag, MPI_Comm communicator) noexcept;

/// The program has been given that message.
void give(const Matched& matched) noexcept;
/// The program receives the message of that handle: what is known of it, once.
std::optional<Matched> take_given(MPI_Message handle) noexcept;

/// The same of a call that does not receive it.
std::optional<Matched> find_given(MPI_Message handle) noexcept;

/// The call that was to receive that stashed message has ended. If it has not received it, the message is stashed
/// again.
void stash_again(const Matched& matched) noexcept;

/// Has slots of this process that no message will be fetched from taken back, if nothing is now received, and what has
/// been matched is received.
void take_back_lost_slots() noexcept;

/// The number of the message that was stashed last.
std::uint64_t last_stashed() noexcept;

/// The communicator has ended: nothing of it is left to be received. Messages with later numbers may be those of
/// another one that has been given the handle.
void forget_messages(MPI_Comm communicator, std::uint64_t last_number) noexcept;

}  // namespace gapless::mpi::headers
