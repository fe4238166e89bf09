// How a process finds out, beside the messages, whether a peer can map its exported memory: by having the peer try. The
// sender leaves the handle in the peer's inbox; the peer tries when it next receives, and answers. Until a peer has
// accepted, messages to that peer go other ways, so nobody waits, and a refusal costs nothing. A peer that has used no
// GPU refuses GPU memory for the time being, and may map memory of the host for its CPU.
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

/// What a peer has answered.
struct Answer {
  enum class Kind : std::uint8_t { none, accepted, refused };
  Kind kind = Kind::none;
  model::Pair pair = model::Pair::peer_gpu;  ///< accepted: how close both processes' GPUs are
};

/// The answer of the inbox's process about the memory. Asks, if this process has not asked yet. `introduction` is the
/// place of the question, for one memory at a time.
Answer introduce(Inbox& peer, std::atomic<unsigned>& introduction, const device::MemoryHandle& handle) noexcept;

/// If the peer has accepted this process's exported pool, which has that handle: how close both processes' GPUs are.
/// Else nothing.
std::optional<model::Pair> accepted_by(Inbox& peer, const device::MemoryHandle& handle) noexcept;

/// Tries to map what senders have asked for since the last call: for kernels of that GPU, or, if `device` is no_gpu,
/// memory of the host for the CPU. Two loads where nothing is asked. Precondition: is_listening().
inline void answer_introductions(int device) noexcept;

/// Other processes' memory that is mapped here for GPUs, and the GPU for which the first memory has been accepted.
/// Precondition: this process has accepted memory for a GPU.
device::OpenedMemory& opened_memory() noexcept;
int accepting_device() noexcept;
/// Other processes' memory of the host that is mapped here for the CPU, and whether any such memory has been accepted.
device::OpenedMemory& opened_pages() noexcept;
bool has_accepted_pages() noexcept;
/// A GPU of this process that reaches that memory, whose introduction has been accepted: for a receive on another GPU,
/// which does not reach the memory.
int accepting_device(const device::MemoryHandle& handle) noexcept;

namespace internal {

/// How many questions have been answered by receives into GPU memory, which answer all, and by receives into memory of
/// the host.
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
