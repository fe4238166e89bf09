// Whether a peer can map this process's exported memory is found out by having it try, beside the messages: the sender
// leaves the handle in the peer's inbox, the peer tries when it next receives, and says how that ended. Until a peer
// has accepted, messages to it go other ways, so nobody waits, and a refusal costs nothing. A peer that has used no GPU
// refuses GPU memory for the time being, and may map memory of the host for its CPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "device/opened_memory.hpp"
#include "model/measured.hpp"
#include "transfer/headers/attention.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer::headers {

/// What a peer has said.
struct Answer {
  enum class Kind : std::uint8_t { none, accepted, refused };
  Kind kind = Kind::none;
  model::Pair pair = model::Pair::peer_gpu;  ///< accepted: how close both processes' GPUs are
};

/// What the peer of that inbox has said of the memory; asks, if this process has not. `introduction` is the place
/// where that is asked, which one memory has at a time.
Answer introduce(Inbox& peer, std::atomic<unsigned>& introduction, const device::MemoryHandle& handle) noexcept;

/// Where the peer has said that it can map this process's exported pool, of that handle: how both processes' GPUs lie
/// to each other. Nothing where it has not.
std::optional<model::Pair> accepted_by(Inbox& peer, const device::MemoryHandle& handle) noexcept;

/// Tries what senders have asked since the last time, for kernels of that GPU or, of memory of the host, for the CPU.
/// Two loads where there is nothing. Precondition: is_listening().
inline void answer_introductions(int device) noexcept;

/// Other processes' memory that is mapped here for GPUs, and the GPU for which the first was accepted. Precondition:
/// this process has accepted one.
device::OpenedMemory& opened_memory() noexcept;
int accepting_device() noexcept;
/// Other processes' memory of the host that is mapped here for the CPU, and whether any has been accepted for that.
device::OpenedMemory& opened_pages() noexcept;
bool has_accepted_pages() noexcept;
/// A GPU of this process that reaches that memory, whose introduction has been accepted: for a receiver on another GPU
/// that does not.
int accepting_device(const device::MemoryHandle& handle) noexcept;

namespace internal {

/// How many have been answered by receives into GPU memory, which answer all, and into memory of the host.
extern std::atomic<std::uint32_t> answered_for_gpu, answered_for_cpu;
void answer(int device) noexcept;

}  // namespace internal

inline void answer_introductions(int device) noexcept {
  const InboxHead& own = *internal::own_head.load(std::memory_order_relaxed);
  const auto& answered = device != no_gpu ? internal::answered_for_gpu : internal::answered_for_cpu;
  if (own.asked.load(std::memory_order_relaxed) != answered.load(std::memory_order_relaxed)) [[unlikely]]
    internal::answer(device);
}

}  // namespace gapless::transfer::headers
