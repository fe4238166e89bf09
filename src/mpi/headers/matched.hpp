// Messages that the library has matched for this process, and the program has not received yet.
//
// A probe must tell the size of the message, and a header has another size. So a probe takes a message of a header's
// length out of the library, looks at the message, and puts it back as a message of the process to itself on the
// private communicator. The program gets a message of the library's, with a status that is put right.
//
// MPI_Probe leaves its message to the next receive. So a message that is taken out for MPI_Probe is *stashed* here,
// with all earlier messages of its sender: a receive of any tag must find the oldest. While nothing is stashed,
// receives pay one load.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::headers {

/// A matched message: the handle that receives the message, and what the program is told of the message.
struct Matched {
  MPI_Message handle{};
  MPI_Comm communicator{};
  MPI_Status status{};        ///< with the message's own size
  std::uint64_t number = 0;   ///< of a stashed message: the order in which the library has matched them
  bool was_stashed = false;   ///< gapless receives the message by another call than the program makes
  bool was_put_back = false;  ///< the library tells of another source and tag
};

namespace internal {
extern std::atomic<std::size_t> stashed, given;
}

// Tags of the private communicator: for messages that are put back, and one for the end of a message that is no whole
// element (mpi/calls/by_library.cpp). Every library has so
// many tags.
inline constexpr int put_back_tags = 32766, tag_of_parts = put_back_tags;

/// Is anything stashed?
inline bool are_stashed() noexcept { return internal::stashed.load(std::memory_order_relaxed) != 0; }

/// Has the program any message that may be another than the library takes it for? If not, a receive of a matched
/// message is the library's.
inline bool are_given() noexcept { return internal::given.load(std::memory_order_relaxed) != 0; }

/// Where several threads call MPI, does the library refuse such a probe or receive, so far as is easily told? Such a
/// call is made without a lock, because the handler that the library calls may probe, or never return.
bool is_refused_among_threads(int source, int tag, MPI_Comm communicator) noexcept;

/// Takes the oldest stashed message that such a receive matches.
std::optional<Matched> take_stashed(int source, int tag, MPI_Comm communicator) noexcept;

/// Notes that the program has been given the message.
void give(const Matched& matched) noexcept;
/// What is known of the message of that handle, once: for the call that receives the message.
std::optional<Matched> take_given(MPI_Message handle) noexcept;

/// The same for a call that does not receive the message.
std::optional<Matched> find_given(MPI_Message handle) noexcept;

/// To be called at the end of the call that is to receive a stashed message: stashes the message again, if the call has
/// not received the message.
void stash_again(const Matched& matched) noexcept;

/// Takes back slots of this process that no message will be fetched from, if no receive is under way, and all matched
/// messages are received.
void look_for_lost_slots() noexcept;

/// The number of the message that was stashed last.
std::uint64_t last_stashed() noexcept;

/// Forgets the stashed messages of a communicator that has ended. Messages with numbers above `last_number` stay: they
/// may be those of another communicator with the same handle.
void forget_messages(MPI_Comm communicator, std::uint64_t last_number) noexcept;

}  // namespace gapless::mpi::headers

/// How many messages have been noted by give(), and are not received yet. For tests.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_messages_given();
