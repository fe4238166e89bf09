// The choice of a scheme: of those that apply, the one that was forced, else the one with the least prediction.
#pragma once

#include <optional>
#include <span>

#include "model/host.hpp"
#include "model/measured.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// For a buffer that is not empty. GAPLESS_SCHEME forces a scheme where the memory allows it: a scheme for host memory
/// leaves GPU memory as it was, and the other way about.
Scheme choose(const Buffer& buffer, Side side) noexcept;
/// The best scheme but for `best`; none where no other applies.
std::optional<Scheme> next_best(const Buffer& buffer, Side side, Scheme best) noexcept;
/// What a scheme that applies is predicted to take (schemes/scheme.hpp says of what), in nanoseconds. `never_ns` where
/// other schemes are measured and it is not.
double predict_ns(Scheme scheme, const Buffer& buffer, Side side) noexcept;
/// What a side's movement of the bytes is predicted to take, and a whole message from call to call, in nanoseconds. Not
/// a finite number where only differences between schemes are known.
double predict_movement_ns(Scheme scheme, const Buffer& buffer, Side side) noexcept;
double predict_message_ns(Scheme scheme, const Buffer& buffer) noexcept;
/// Every scheme's name, in the order of Scheme.
std::span<const char* const> scheme_names() noexcept;
/// Native or packed for MPI_Pack and MPI_Unpack within host memory.
Scheme choose_packing(const Buffer& buffer) noexcept;

/// How a noncontiguous buffer in host memory goes by header: by slots, or direct, through a ring, where it is too long.
Scheme header_scheme(const Buffer& buffer) noexcept;
/// Does a buffer in host memory go by header to a process that listens? As forced, else as predicted.
bool choose_header(const Buffer& buffer, bool gets_request = false) noexcept;
/// Does packing host memory gain what a request adds to it?
bool is_worth_a_request(const Buffer& buffer) noexcept;
/// Is a buffer in GPU memory long enough to go by header, unless by a fabric?
bool may_go_direct(const Buffer& buffer) noexcept;
/// May a buffer in host memory go direct, to a process whose GPU takes such messages? Long ones may.
bool may_go_direct_from_host(const Buffer& buffer) noexcept;
/// Does a buffer in GPU memory go direct, to a process that can map this one's GPU memory and whose GPU is that far
/// from this one's? As forced, else as predicted.
bool choose_direct(const Buffer& buffer, model::Pair pair) noexcept;
/// Of a message to a process of the node that listens, and, from GPU memory, can map this one's and has a GPU that is
/// that far: what a scheme is predicted to take, `never_ns` where it does not apply, and the one that is chosen. Of
/// host memory one side's time beside the library's own way, of GPU memory the whole message's.
double predict_in_node_ns(Scheme scheme, const Buffer& buffer, model::Pair pair) noexcept;
Scheme choose_in_node(const Buffer& buffer, model::Pair pair) noexcept;
/// Is a buffer offered to the fabric that the settings ask for: a noncontiguous one in host memory, or any in GPU
/// memory? As forced, else as predicted.
bool choose_fabric(const Buffer& buffer) noexcept;
/// What choose() says where the peer cannot be reached by the fabric.
Scheme choose_without_fabric(const Buffer& buffer, Side side) noexcept;

/// Is it a scheme that two processes agree on by a header?
inline bool is_agreed(Scheme scheme) noexcept { return scheme >= Scheme::slots; }
/// Did GAPLESS_SCHEME, or force_scheme(), say so? Where a scheme is forced that two processes agree on, host memory
/// that cannot go by it is packed: a receive that may take a header must have its bytes in one piece.
bool is_forced(Scheme scheme) noexcept;
bool is_any_forced() noexcept;
/// Replaces what GAPLESS_SCHEME said. For tests and benchmarks.
void force_scheme(std::optional<Scheme> scheme) noexcept;

/// What packing such a part of a collective saves at most, in ns, over leaving it to the library; infinite where
/// packing is forced, 0 where it is forbidden. Noncontiguous host memory.
double part_saving_ns(const Buffer& part) noexcept;
/// What the model predicts a buffer's time in host memory from.
model::Amount amount_of(const Buffer& buffer) noexcept;

}  // namespace gapless::transfer

/// force_scheme() by name, for benchmarks: null, or what is no scheme's name, forces none.
extern "C" void gapless_transfer_force_scheme(const char* name);
