// This process's end of the fabric that the settings ask for, and the progress thread.
//
// Two processes move a message without an MPI call: the sender's offer goes in a header in the message's place, the
// receiver writes its reply into the sender's mailbox, and from then on both ends need nothing but polling. Callers
// that wait poll. Where no caller waits, the progress thread polls, which calls no MPI. So a message that both sides
// have begun comes to its end whatever MPI call the program is in, or none.
//
// A message that nobody has taken for a while is copied out: its send is complete, and the copy waits for the receiver.
// So no sender waits for a receiver that waits for something else. Packed bytes of a GPU belong to the message from the
// beginning, and are not copied.
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
/// Does GAPLESS_FABRIC ask for a fabric, with processes that may be reached: on other nodes, or on this one where
/// GAPLESS_FABRIC_NEIGHBOURS says so?
bool is_wanted() noexcept;
/// Opens the fabric, once, as rank `rank` of `size`. To be called after MPI_Init. The progress thread begins with the
/// first message.
void start(int rank, int size) noexcept;
/// Waits for messages that are copied out, while their receivers may still take them: `has_ended(rank)` says which
/// receivers cannot.
void drain(bool (*has_ended)(int rank)) noexcept;
/// The number of registrations that messages hold: after drain(), those of messages that can never be over.
std::uint64_t held_registrations() noexcept;
/// Ends the progress thread. Nothing can be sent or received from now on; the fabric stays open until the process ends.
void stop() noexcept;

/// A number that processes with the same fabric have in common; 0 where this process has no fabric.
std::uint64_t fabric_kind() noexcept;
/// This process's rank, and its address in the fabric. Precondition: fabric_kind() is not 0.
int own_rank() noexcept;
std::span<const std::byte> own_address() noexcept;

/// Would a message with such blocks at both sides arrive sooner by one of the schemes than by the MPI library? As
/// predicted; a sender knows no more of its receiver. `others_ns` is the message's time by the library; where that is
/// not finite (not measured), or the fabric is not measured, the library's message is predicted as packed bytes by a
/// fabric like this one. False where no fabric is open.
bool is_sooner_than_others(const Blocks& blocks, double others_ns) noexcept;

/// One message under way.
struct Transfer;
struct EndTransfer {
  /// Copies out a send that is not over; waits for a receive that is not over.
  void operator()(Transfer* transfer) const noexcept;
};
using OwnedTransfer = std::unique_ptr<Transfer, EndTransfer>;

/// Begins a message to that rank; null where the fabric cannot take the message now.
OwnedTransfer begin_send(int rank, const Memory& memory) noexcept;
/// The same for packed bytes of that GPU. The caller writes the packed bytes to packed_of() before the header is sent.
OwnedTransfer begin_packed_send(int rank, int device, std::size_t bytes) noexcept;
/// Memory for packed bytes of a GPU, which lives as long as the transfer: the GPU's own where the fabric reaches that
/// memory, else page-locked. Empty where the transfer has no such memory.
const PoolBuffer& packed_of(const Transfer& transfer) noexcept;
const Offer& offer_of(const Transfer& transfer) noexcept;
/// Ends a send whose header has not been sent.
void withdraw(OwnedTransfer& transfer) noexcept;
/// Begins to receive a message from that rank into `memory`, which has the offered size. Null where there is no memory
/// for the transfer.
OwnedTransfer begin_receive(int rank, std::span<const std::byte> address, const Offer& offer,
                            const Memory& memory) noexcept;
/// The same into packed_of(), in memory of that GPU. Null also where the fabric does not reach that memory, or the
/// sender's bytes do not go straight there.
OwnedTransfer begin_receive_on_gpu(int rank, std::span<const std::byte> address, const Offer& offer,
                                   int device) noexcept;
/// Tells the sender that its message is not wanted.
void decline(int rank, std::span<const std::byte> address, const Offer& offer) noexcept;

/// How a received message went.
struct Taken {
  transfer::Scheme scheme = transfer::Scheme::fabric_pipelined;
  double ns = 0;  ///< from the look at the header to the last byte
  double predicted_ns = std::numeric_limits<double>::quiet_NaN();
};
/// Precondition: poll() or wait() has said ok.
const Taken& taken_by(const Transfer& transfer) noexcept;

/// Polls. ok or a failure once the transfer is over, or once a send is complete alone; else under_way.
transfer::Result poll(Transfer& transfer) noexcept;
/// Waits until poll() says ok or a failure. A send waits no longer than its patience, and then completes alone.
transfer::Result wait(Transfer& transfer) noexcept;
/// Ends a send's use of the program's memory: at once, by a copy, where nobody has taken the message.
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
  gpu_bytes,    ///< of messages written straight from or to GPU memory of this process
  count
};

}  // namespace gapless::transfer::rdma

/// What this process's messages have counted so far: a number for each of rdma::Counted.
extern "C" void gapless_fabric_counts(std::uint64_t* counts);
