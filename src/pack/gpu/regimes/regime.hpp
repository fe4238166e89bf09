// The names of the regimes: kinds of kernels, each with its own way of giving threads to bytes. Which one runs a job is
// choose_regime's business (pack/gpu/plan/choose.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gapless::pack::gpu {

enum class Regime : std::uint8_t {
  contiguous,
  nest,
  shifted,
  sectors,
  transpose,
  interleaved,
  segments,
  tree,
  ordered
};

/// What a layout is to kernels.
enum class Kind : std::uint8_t { contiguous, nest, segments, tree };

/// nest, shifted, sectors, transpose, interleaved, segments or tree; nothing for other words.
std::optional<Regime> regime_named(std::string_view name) noexcept;

/// What GAPLESS_GPU_REGIME names.
std::optional<Regime> forced_regime() noexcept;

}  // namespace gapless::pack::gpu
