// The choice of a scheme: what the memory allows, then what was forced, then what the model predicts to be fastest.
#include <atomic>
#include <optional>

#include "base/settings.hpp"
#include "model/model.hpp"
#include "transfer/transfer.hpp"

namespace gapless::transfer {
namespace {

constexpr const char* scheme_names[scheme_count] = {"native", "packed", "oneshot", "staged"};

constexpr int no_scheme = -1;

int forced_by_environment() noexcept {
  for (std::size_t i = 0; i < scheme_count; ++i) {
    if (settings().scheme == scheme_names[i]) return static_cast<int>(i);
  }
  return no_scheme;
}

std::atomic<int>& forced() noexcept {
  static std::atomic<int> scheme = forced_by_environment();
  return scheme;
}

Scheme choose_for_gpu(const Buffer& buffer, Side side) noexcept {
  if (is_forced(Scheme::oneshot)) return Scheme::oneshot;
  if (is_forced(Scheme::staged)) return Scheme::staged;
  const auto bytes = static_cast<std::size_t>(buffer.size());
  const auto& gpu = model::profile().gpu;
  const auto model_side = side == Side::sender ? model::Side::sender : model::Side::receiver;
  // A contiguous buffer is one copy either way; staging it would only add a second.
  if (is_contiguous(buffer)) return Scheme::oneshot;
  return model::oneshot_ns(gpu, model_side, bytes) <= model::staged_ns(gpu, bytes) ? Scheme::oneshot : Scheme::staged;
}

model::Amount amount_of(const Buffer& buffer) noexcept {
  const layout::Facts& facts = buffer.type->facts;
  const auto count = static_cast<double>(buffer.count);
  return {count * static_cast<double>(facts.size), count * static_cast<double>(facts.block_count),
          count * static_cast<double>(facts.row_count)};
}

Scheme choose_for_host(double saving_ns) noexcept {
  if (is_forced(Scheme::native)) return Scheme::native;
  if (is_forced(Scheme::packed)) return Scheme::packed;
  return saving_ns > 0 ? Scheme::packed : Scheme::native;
}

}  // namespace

const char* name(Scheme scheme) noexcept { return scheme_names[static_cast<std::size_t>(scheme)]; }

bool is_forced(Scheme scheme) noexcept { return forced().load(std::memory_order_relaxed) == static_cast<int>(scheme); }

void force_scheme(std::optional<Scheme> scheme) noexcept {
  forced().store(scheme ? static_cast<int>(*scheme) : no_scheme, std::memory_order_relaxed);
}

bool is_contiguous(const Buffer& buffer) noexcept {
  return buffer.type->contiguous_repeats || (buffer.count == 1 && buffer.type->layout->is_contiguous());
}

Scheme choose(const Buffer& buffer, Side side) noexcept {
  if (buffer.location.kind == device::MemoryKind::device) return choose_for_gpu(buffer, side);
  if (is_contiguous(buffer)) return Scheme::native;
  const model::Amount amount = amount_of(buffer);
  return choose_for_host(model::profile().host.message(amount).of(amount));
}

Scheme choose_packing(const Buffer& buffer) noexcept {
  if (is_contiguous(buffer)) return Scheme::native;
  return choose_for_host(model::profile().host.pack.of(amount_of(buffer)));
}

}  // namespace gapless::transfer
