// What was chosen, how often and for how many bytes: one counter pair per scheme.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "transfer/message.hpp"

namespace gapless::transfer {

struct Count {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

/// Are native messages to be counted as well, and is a summary wanted at the end (GAPLESS_STATISTICS=1)? A native
/// message costs nanoseconds, so native messages are counted only when asked for.
bool statistics_wanted() noexcept;

/// Thread-safe.
void record(Scheme scheme, std::size_t bytes) noexcept;

/// Undoes record() with the same arguments: the message goes another way.
void take_back(Scheme scheme, std::size_t bytes) noexcept;

/// Counts an analysis of a datatype. Thread-safe.
void record_analysis() noexcept;

/// Messages that endpoints have sent, by how their bytes went.
struct EndpointMessages {
  std::uint64_t copied = 0;      ///< in and out of shared memory
  std::uint64_t lent = 0;        ///< read from the sender's buffer, in one process
  std::uint64_t attached = 0;    ///< read from the sender's buffer, by another process
  std::uint64_t in_outbox = 0;   ///< copied into the sender's shared memory, and out of there
  std::uint64_t by_library = 0;  ///< left to the MPI library
  std::uint64_t by_both = 0;     ///< attached messages of which the sender has copied a part
};
/// Adds the messages of one endpoint. Thread-safe.
void record(const EndpointMessages& messages) noexcept;

/// What should not be left when MPI ends.
struct Leftovers {
  std::uint64_t requests = 0;       ///< that the program has not completed, or not freed
  std::uint64_t buffers = 0;        ///< of packed bytes, in use or kept by a thread that has not ended
  std::uint64_t registrations = 0;  ///< with a fabric, of memory that a message holds
};
void record_leftovers(const Leftovers& left) noexcept;

/// Counts so far, indexed by Scheme.
std::array<Count, scheme_count> statistics() noexcept;

/// One line: "native 3 messages 24 B, packed 1 message 4096 B, …" of the schemes that were chosen, messages of
/// endpoints if there were any, and what is left, if anything is.
std::string summary();

}  // namespace gapless::transfer

/// For tests and tools: scheme_count numbers each, in the order of transfer::Scheme.
extern "C" void gapless_transfer_statistics(std::uint64_t* messages, std::uint64_t* bytes);
extern "C" std::uint64_t gapless_transfer_analyses();
/// Messages of endpoints that have been freed: six numbers, in the order of transfer::EndpointMessages.
extern "C" void gapless_endpoint_statistics(std::uint64_t* messages);
/// All zero until MPI has ended.
extern "C" void gapless_transfer_leftovers(std::uint64_t* requests, std::uint64_t* buffers,
                                           std::uint64_t* registrations);
