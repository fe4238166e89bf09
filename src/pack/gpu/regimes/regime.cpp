#include "pack/gpu/regimes/regime.hpp"

#include "base/settings.hpp"

namespace gapless::pack::gpu {

const char* name(Regime regime) noexcept {
  switch (regime) {
    case Regime::contiguous:
      return "contiguous";
    case Regime::ordered:
      return "ordered";
    default:
      break;
  }
  for (const auto& [known, named] : named_regimes) {
    if (named == regime) return known.data();
  }
  return "";
}

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
