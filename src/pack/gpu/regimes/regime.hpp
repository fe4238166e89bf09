// The names of the regimes: kinds of kernels, each with its own way of giving threads to bytes. Which one runs a job is
// choose_regime's business (pack/gpu/plan/choose.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

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

const char* name(Regime regime) noexcept;

/// The regimes that may be asked for by name.
inline constexpr std::array<std::pair<std::string_view, Regime>, 7> named_regimes{{{"nest", Regime::nest},
                                                                                   {"shifted", Regime::shifted},
                                                                                   {"sectors", Regime::sectors},
                                                                                   {"transpose", Regime::transpose},
                                                                                   {"interleaved", Regime::interleaved},
                                                                                   {"segments", Regime::segments},
                                                                                   {"tree", Regime::tree}}};

/// Nothing for other words than those of named_regimes.
std::optional<Regime> regime_named(std::string_view name) noexcept;

/// What GAPLESS_GPU_REGIME names.
std::optional<Regime> forced_regime() noexcept;

}  // namespace gapless::pack::gpu
