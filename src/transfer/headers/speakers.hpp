// Who speaks headers: this process once it listens, and those peers of its node that stand in the registry.
//
// What a process accepts is said by its inbox, which is there before the process is in the registry: whoever finds it
// may send headers once the process is attentive (headers/attention.hpp).
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
extern std::int32_t own_process;  ///< its number, from then on
}  // namespace internal

/// Is it wanted that this process speaks headers?
bool are_wanted() noexcept;

/// Makes this process's inbox and enters it into the registry, once, as rank `rank` of `size` of its job. Nothing
/// happens where that is not possible: the process listens, or it does not. Precondition: from now on every receive of
/// the process that may take a header is looked at, or counted as unattended.
void listen(int rank, int size) noexcept;

/// What this process tells those of other nodes; one without a fabric where it does not listen.
Speaker own_speaker() noexcept;
/// All ranks have told each other, while none could receive: those of other nodes can be sent to from now on.
void learn(std::unique_ptr<Speaker[]> speakers) noexcept;

/// May a message that is received be a header?
inline bool is_listening() noexcept { return internal::listening.load(std::memory_order_relaxed); }

/// The inbox of that rank of the job, this process's own for its own, if headers may be sent to it; else null. Stays.
/// Thread-safe. A rank that is not there is looked for again now and then, for it may not have started yet.
Inbox* find_inbox(int rank) noexcept;

/// This process's number, without a system call. Precondition: is_listening().
inline std::int32_t own_process() noexcept { return internal::own_process; }
/// This process's own. Precondition: is_listening().
Inbox& own_inbox() noexcept;
int own_rank() noexcept;

/// Has end() been called? Precondition: is_listening().
bool has_ended() noexcept;

/// This process receives nothing more. Waits for messages that others have still to fetch. `have_all_ended` says
/// whether all ranks receive nothing more, those of other nodes too.
void end(bool (*have_all_ended)()) noexcept;

/// Are these few bytes those that a header to this process begins with? Precondition: no more than a nonce has.
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
