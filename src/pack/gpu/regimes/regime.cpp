#include "pack/gpu/regimes/regime.hpp"

#include <array>
#include <utility>

#include "base/settings.hpp"

namespace gapless::pack::gpu {

std::optional<Regime> regime_named(std::string_view name) noexcept {
  constexpr std::array<std::pair<std::string_view, Regime>, 7> names{{{"nest", Regime::nest},
                                                                      {"shifted", Regime::shifted},
                                                                      {"sectors", Regime::sectors},
                                                                      {"transpose", Regime::transpose},
                                                                      {"interleaved", Regime::interleaved},
                                                                      {"segments", Regime::segments},
                                                                      {"tree", Regime::tree}}};
  for (const auto& [known, regime] : names) {
    if (known == name) return regime;
  }
  return {};
}

std::optional<Regime> forced_regime() noexcept {
  static const std::optional<Regime> forced = regime_named(settings().gpu_regime);
  return forced;
}

}  // namespace gapless::pack::gpu
