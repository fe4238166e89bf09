// Who speaks headers: this process once it listens, and the peers of its node that are in the registry.
//
// A process has an inbox before it is in the registry. A peer that finds the process there may send headers once the
// inbox says that the process is attentive (transfer/headers/attention.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>

#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"

namespace gapless::transfer::headers {

namespace internal {
extern std::atomic<bool> listening;
extern Nonce own_nonce;           ///< stays once this process listens
extern std::int32_t own_process;  ///< this process's number, once it listens
}  // namespace internal

/// Is this process to speak headers, by the settings?
bool are_wanted() noexcept;

/// Makes this process's inbox and enters the process into the registry, once, as rank `rank` of `size` of its job.
/// Where that is not possible, the process does not listen. Precondition: from now on every receive of the process that
/// may take a header is looked at, or counted as unattended.
void listen(int rank, int size) noexcept;

/// What this process tells processes of other nodes; a speaker without a fabric where this process does not listen.
Speaker own_speaker() noexcept;
/// Takes what all ranks have told each other, before any could receive: from now on ranks of other nodes can be sent
/// to.
void learn(std::unique_ptr<Speaker[]> speakers) noexcept;

/// May a message that is received be a header?
inline bool is_listening() noexcept { return internal::listening.load(std::memory_order_relaxed); }

/// The inbox of that rank of the job, also of this process's own rank, if headers may be sent to the rank; else null.
/// The inbox stays. Thread-safe. A rank that is not in the registry may not have started yet, and is looked for again
/// now and then.
Inbox* find_inbox(int rank) noexcept;

/// This process's number, without a system call. Precondition: is_listening().
inline std::int32_t own_process() noexcept { return internal::own_process; }
/// This process's own inbox and rank. Precondition: is_listening().
Inbox& own_inbox() noexcept;
int own_rank() noexcept;

/// Has end() been called? Precondition: is_listening().
bool has_stopped_receiving() noexcept;

/// Says that this process receives nothing more, and waits for messages that others have still to fetch.
/// `have_all_ended` says whether all ranks, also of other nodes, receive nothing more.
void end(bool (*have_all_ended)()) noexcept;

/// Are these bytes the beginning of a header to this process? Precondition: no more bytes than a nonce has.
inline bool begins_header(const void* received, std::size_t bytes) noexcept {
  return is_listening() && std::memcmp(received, internal::own_nonce.data(), bytes) == 0;
}

/// Is what was received, `bytes` bytes, a header?
inline bool is_header(const void* received, std::size_t bytes) noexcept {
  if (bytes != Header::size || !is_listening()) return false;
  const Nonce& nonce = internal::own_nonce;
  const auto* begin = static_cast<const std::byte*>(received);
  return std::memcmp(begin, nonce.data(), nonce.size()) == 0 &&
         std::memcmp(begin + Header::size - nonce.size(), nonce.data(), nonce.size()) == 0;
}

}  // namespace gapless::transfer::headers
