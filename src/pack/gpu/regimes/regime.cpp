#include "pack/gpu/regimes/regime.hpp"

#include "base/settings.hpp"

namespace gapless::pack::gpu {

std::optional<Regime> regime_named(std::string_view name) noexcept {
  for (const auto& [known, regime] : named_regimes) {
    if (known == name) return regime;
  }
  return {};
}

std::optional<Regime> forced_regime() noexcept {
  static const std::optional<Regime> forced = regime_named(settings().gpu_regime);
  return forced;
}

}  // namespace gapless::pack::gpu
