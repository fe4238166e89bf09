// The choice of a scheme: the forced scheme if that applies, else the one with the least predicted time of those that
// apply.
#pragma once

#include <optional>
#include <span>

#include "model/host.hpp"
#include "model/measured.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// The scheme of a buffer that is not empty. GAPLESS_SCHEME forces a scheme where the memory allows it: to force a
/// scheme for host memory does not change the choice for GPU memory, nor the other way about.
/// While choose_always() is in force on this thread (host_trial.hpp), host memory goes that way instead.
Scheme choose(const Buffer& buffer, Side side) noexcept;
/// The best scheme but for `best`; none where no other applies.
std::optional<Scheme> next_best(const Buffer& buffer, Side side, Scheme best) noexcept;
/// The predicted time of a scheme that applies, in nanoseconds; transfer/schemes/scheme.hpp says of what. `never_ns`
/// where other schemes are measured and this one is not.
double predict_ns(Scheme scheme, const Buffer& buffer, Side side) noexcept;
/// The predicted times of one side's movement of the bytes, and of a whole message from call to call, in nanoseconds.
/// Infinite where only differences between schemes are known.
double predict_movement_ns(Scheme scheme, const Buffer& buffer, Side side) noexcept;
double predict_message_ns(Scheme scheme, const Buffer& buffer) noexcept;
/// Every scheme's name, in the order of Scheme.
std::span<const char* const> scheme_names() noexcept;
/// Native or packed for MPI_Pack and MPI_Unpack within host memory.
Scheme choose_packing(const Buffer& buffer) noexcept;

/// The scheme of a noncontiguous buffer in host memory that goes by header: slots, or direct, through a ring, for a
/// buffer too long for slots.
Scheme header_scheme(const Buffer& buffer) noexcept;
/// Does a buffer in host memory go by header to a process that listens? As forced, else as predicted.
bool goes_by_header(const Buffer& buffer, bool gets_request = false) noexcept;
/// Does packing host memory gain more than a request costs?
bool is_worth_a_request(const Buffer& buffer) noexcept;
/// Is a buffer in GPU memory long enough to go direct?
bool may_go_direct(const Buffer& buffer) noexcept;
/// May a buffer in host memory go direct to a process whose GPU takes such messages? Only a buffer that is too long for
/// slots may.
bool may_go_direct_from_host(const Buffer& buffer) noexcept;
/// Does a buffer in GPU memory go direct to a process that can map this process's GPU memory, and whose GPU is at the
/// distance `pair`? As forced, else as predicted.
bool goes_direct(const Buffer& buffer, model::Pair pair) noexcept;
/// For a message to a process of the node that listens: the predicted time of a scheme, and the scheme that is chosen.
/// For GPU memory, that process can map this process's memory, and its GPU is at the distance `pair`. The time is in
/// nanoseconds: of host memory one side's, beside the library's own way; of GPU memory the whole message's; `never_ns`
/// where the scheme does not apply.
double predict_in_node_ns(Scheme scheme, const Buffer& buffer, model::Pair pair) noexcept;
Scheme choose_in_node(const Buffer& buffer, model::Pair pair) noexcept;
/// Is a buffer, noncontiguous in host memory or any in GPU memory, offered to the fabric that the settings ask for? As
/// forced, else as predicted.
bool goes_by_fabric(const Buffer& buffer) noexcept;
/// What choose() says where the peer cannot be reached by the fabric.
Scheme choose_without_fabric(const Buffer& buffer, Side side) noexcept;

/// Do two processes agree on the scheme by a header?
inline bool is_agreed(Scheme scheme) noexcept { return scheme >= Scheme::slots; }
/// Is the scheme forced, by GAPLESS_SCHEME or force_scheme()? A forced scheme that two processes agree on forces
/// `packed` as well, for host memory that cannot go that way: a receive that may take a header must have its bytes in
/// one piece.
bool is_forced(Scheme scheme) noexcept;
bool is_any_forced() noexcept;
/// Replaces GAPLESS_SCHEME. For tests and benchmarks.
void force_scheme(std::optional<Scheme> scheme) noexcept;

/// The most nanoseconds that packing a part of a collective saves over the library's own way; infinite where packing is
/// forced, 0 where packing is forbidden. Precondition: noncontiguous host memory.
double part_saving_ns(const Buffer& part) noexcept;
/// What the model predicts a buffer's time in host memory from.
model::Amount amount_of(const Buffer& buffer) noexcept;

}  // namespace gapless::transfer

/// force_scheme() by name, for benchmarks: null, or what is no scheme's name, forces none.
extern "C" void gapless_transfer_force_scheme(const char* name);
