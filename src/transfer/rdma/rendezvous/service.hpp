// This process's end of the fabric that the settings ask for, and the thread that makes progress there.
//
// Two processes move a message without an MPI call: the sender's offer goes in a header in the message's place, the
// receiver writes its reply into the sender's mailbox, and from then on both ends need nothing but polling. Callers
// that wait poll; whoever does not is helped by the thread, which calls no MPI. So a message that both sides have begun
// comes to its end whatever MPI call the program is in, or none.
//
// A message that nobody has taken for a while is copied out: its sender is complete, and the copy waits for the
// receiver. So no sender waits for a receiver that waits for something else. Packed bytes of a GPU are the message's
// own from the beginning, and are not copied.
//
// All functions are thread-safe; nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "transfer/buffers/buffers.hpp"
#include "transfer/message.hpp"
#include "transfer/rdma/rendezvous/letter.hpp"

namespace gapless::transfer::rdma {

/// Shorter messages never go by a fabric: the MPI libraries complete their sends at once.
inline constexpr layout::Offset least_bytes = 16 << 10;

/// The job runs on several nodes, with gapless in all ranks. Called before start(), if at all.
void join_nodes() noexcept;
/// Is a fabric asked for, and there may be somebody to reach by it: a process of another node, or of this one where
/// GAPLESS_FABRIC_NEIGHBOURS says so? (GAPLESS_FABRIC)
bool is_wanted() noexcept;
/// Opens the fabric, once, as rank `rank` of `size`; the thread begins with the first message. After MPI_Init.
void start(int rank, int size) noexcept;
/// Waits for messages that are copied out, while their receivers may still take them: `has_ended(rank)` says who
/// cannot.
void drain(bool (*has_ended)(int rank)) noexcept;
/// Registrations of memory that messages hold: after drain(), those of messages that can never be over.
std::uint64_t held_registrations() noexcept;
/// Ends the thread. Nothing can be sent or received from now on; the fabric stays open until the process ends.
void stop() noexcept;

/// A number that processes with the same fabric have in common; 0: this one has none.
std::uint64_t fabric_kind() noexcept;
/// Its rank, and how it is reached.
int own_rank() noexcept;
std::span<const std::byte> own_address() noexcept;

/// Would a message with such blocks at both sides arrive sooner by one of the schemes than by the MPI library? As
/// predicted; a sender knows no more of its receiver. By the library the message takes `others_ns`, if that and the
/// fabric are measured; else it is predicted packed, by a fabric like this one. False where no fabric is open.
bool is_sooner_than_others(const Blocks& blocks, double others_ns) noexcept;

/// One message under way.
struct Transfer;
struct EndTransfer {
  /// What is not over is copied out, or, of a receive, waited for.
  void operator()(Transfer* transfer) const noexcept;
};
using OwnedTransfer = std::unique_ptr<Transfer, EndTransfer>;

/// A message to that rank; null if that cannot be had now.
OwnedTransfer begin_send(int rank, const Memory& memory) noexcept;
/// The same of packed bytes of that GPU, which are to be written to packed_of() before the header is sent.
OwnedTransfer begin_packed_send(int rank, int device, std::size_t bytes) noexcept;
/// Memory for packed bytes of a GPU, as long as the transfer: the GPU's own where the fabric reaches that, else
/// page-locked. Empty where a transfer has none of its own.
const PoolBuffer& packed_of(const Transfer& transfer) noexcept;
const Offer& offer_of(const Transfer& transfer) noexcept;
/// Its header has not been sent.
void withdraw(OwnedTransfer& transfer) noexcept;
/// A message from that rank into `memory`, of the size that is offered. Null: without memory.
OwnedTransfer begin_receive(int rank, std::span<const std::byte> address, const Offer& offer,
                            const Memory& memory) noexcept;
/// The same into packed_of(), in that GPU's memory. Null where the fabric does not reach it, or the sender's bytes do
/// not go straight there.
OwnedTransfer begin_receive_on_gpu(int rank, std::span<const std::byte> address, const Offer& offer,
                                   int device) noexcept;
/// Tells the sender that its message is not wanted.
void decline(int rank, std::span<const std::byte> address, const Offer& offer) noexcept;

/// How a message that has been received went.
struct Taken {
  transfer::Scheme scheme = transfer::Scheme::fabric_pipelined;
  double ns = 0;  ///< from the look at its header to its last byte
  double predicted_ns = std::numeric_limits<double>::quiet_NaN();
};
/// Precondition: poll() or wait() has said ok.
const Taken& taken_by(const Transfer& transfer) noexcept;

/// Polls; ok or a failure once it is over, or, of a send, once it is complete alone.
transfer::Result poll(Transfer& transfer) noexcept;
/// Waits until poll() says so, a send no longer than its patience.
transfer::Result wait(Transfer& transfer) noexcept;
/// Has a send done with the program's memory, at once where nobody has taken it.
transfer::Result complete_alone(Transfer& transfer) noexcept;
/// Has nobody taken the send for so long that it is to complete alone?
bool is_patience_over(const Transfer& transfer) noexcept;

/// For reports and tests: gapless_fabric_counts().
enum class Counted : std::uint8_t {
  posts,
  lists,
  posted_bytes,
  notifications,
  copied_bytes,
  registrations,
  copied_out,
  abandoned,
  completions,  ///< of posts and notifications
  gpu_bytes,    ///< of messages that were written straight from GPU memory of this process, or to it
  count
};

}  // namespace gapless::transfer::rdma

/// What this process's messages have taken so far: a number for each of rdma::Counted.
extern "C" void gapless_fabric_counts(std::uint64_t* counts);
