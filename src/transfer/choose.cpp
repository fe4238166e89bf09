#include "transfer/choose.hpp"

#include <array>
#include <atomic>
#include <limits>
#include <optional>

#include "base/settings.hpp"
#include "model/model.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer {
namespace {

constexpr std::array every_scheme = {Scheme::native, Scheme::packed, Scheme::oneshot, Scheme::staged, Scheme::slots};
static_assert(every_scheme.size() == scheme_count);

constexpr int no_scheme = -1;

int forced_by_environment() noexcept {
  for (const Scheme scheme : every_scheme) {
    if (settings().scheme == name(scheme)) return static_cast<int>(scheme);
  }
  return no_scheme;
}

std::atomic<int>& forced() noexcept {
  static std::atomic<int> scheme = forced_by_environment();
  return scheme;
}

}  // namespace

bool is_forced(Scheme scheme) noexcept {
  const int what = forced().load(std::memory_order_relaxed);
  return what == static_cast<int>(scheme) || (scheme == Scheme::packed && what == static_cast<int>(Scheme::slots));
}

void force_scheme(std::optional<Scheme> scheme) noexcept {
  forced().store(scheme ? static_cast<int>(*scheme) : no_scheme, std::memory_order_relaxed);
}

bool is_contiguous(const Buffer& buffer) noexcept {
  return buffer.type->contiguous_repeats || (buffer.count == 1 && buffer.type->layout->is_contiguous());
}

model::Amount amount_of(const Buffer& buffer) noexcept {
  const layout::Facts& facts = buffer.type->facts;
  const auto count = static_cast<double>(buffer.count);
  return {count * static_cast<double>(facts.size), count * static_cast<double>(facts.block_count),
          count * static_cast<double>(facts.row_count)};
}

Scheme choose(const Buffer& buffer, Side side) noexcept {
  Scheme best = Scheme::native;
  double least_ns = std::numeric_limits<double>::infinity();
  for (const Scheme scheme : every_scheme) {
    const schemes::Base& candidate = schemes::of(scheme);
    if (!candidate.applies(buffer)) continue;
    if (is_forced(scheme)) return scheme;
    const double predicted_ns = candidate.predict_ns(buffer, side);
    if (predicted_ns >= least_ns) continue;
    best = scheme;
    least_ns = predicted_ns;
  }
  return best;
}

Scheme choose_packing(const Buffer& buffer) noexcept {
  if (is_contiguous(buffer) || is_forced(Scheme::native)) return Scheme::native;
  if (is_forced(Scheme::packed)) return Scheme::packed;
  return model::profile().host.pack.of(amount_of(buffer)) > 0 ? Scheme::packed : Scheme::native;
}

}  // namespace gapless::transfer
