// The choice of a scheme: of those that apply, the one that was forced, else the one with the least prediction.
#pragma once

#include <optional>

#include "model/host.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer {

/// For a buffer that is not empty. GAPLESS_SCHEME forces a scheme where the memory allows it: a scheme for host memory
/// leaves GPU memory as it was, and the other way about.
Scheme choose(const Buffer& buffer, Side side) noexcept;
/// Native or packed for MPI_Pack and MPI_Unpack within host memory.
Scheme choose_packing(const Buffer& buffer) noexcept;

/// Did GAPLESS_SCHEME, or force_scheme(), say so? Where slots are forced, what cannot go by them is packed.
bool is_forced(Scheme scheme) noexcept;
/// Replaces what GAPLESS_SCHEME said. For tests and benchmarks.
void force_scheme(std::optional<Scheme> scheme) noexcept;

/// What the model predicts a buffer's time in host memory from.
model::Amount amount_of(const Buffer& buffer) noexcept;

}  // namespace gapless::transfer
