#include "pack/gpu/route/engine.hpp"

#include <algorithm>

#include "base/settings.hpp"
#include "model/gpu.hpp"

namespace gapless::pack::gpu {
namespace {

constexpr const model::GpuCosts& costs = model::gpu_costs;

std::int64_t further_copies_ns(const Movement& movement) { return (movement.copies - 1) * costs.next_copy_ns; }

std::int64_t rows_ns(const Movement& movement) {
  constexpr std::uint64_t sector = 32;
  const model::GpuRowCost& cost = costs.row[static_cast<std::size_t>(movement.traffic)];
  const auto rows = static_cast<std::int64_t>(movement.rows), bytes = static_cast<std::int64_t>(movement.bytes);
  const bool splits = movement.bytes % (sector * std::max<std::uint64_t>(movement.rows, 1)) != 0;
  const std::int64_t beside = cost.beside_bytes + (splits ? costs.split_row_picoseconds : 0);
  const std::int64_t bytes_ns = bytes * 1000 / costs.copy[static_cast<std::size_t>(movement.traffic)].bytes_per_us;
  return std::max(rows * beside / 1000, rows * cost.least / 1000 - bytes_ns);
}

const model::GpuCost& cost_of(Engine engine, const Movement& movement) {
  const auto traffic = static_cast<std::size_t>(movement.traffic);
  if (engine == Engine::copies) return costs.copy[traffic];
  return movement.in_chunks ? costs.chunks : costs.kernel[traffic];
}

std::int64_t bytes_ns(Engine engine, const Movement& movement) {
  return static_cast<std::int64_t>(movement.bytes) * 1000 / cost_of(engine, movement).bytes_per_us;
}

std::int64_t moving_ns(Engine engine, const Movement& movement) {
  const std::int64_t moving = bytes_ns(engine, movement);
  return engine == Engine::copies ? moving + rows_ns(movement) + further_copies_ns(movement) : moving;
}

/// Within a GPU strided copies are kernels of the driver's, which wait for multiprocessors too and are slower than
/// ours.
bool may_copy(const Movement& movement) { return movement.copies > 0 && movement.traffic != Traffic::within_gpu; }

bool can_run(Engine engine, const Movement& movement) { return engine != Engine::copies || movement.copies > 0; }

}  // namespace

std::int64_t expected_ns(Engine engine, const Movement& movement) noexcept {
  std::int64_t start = cost_of(engine, movement).waited_ns;
  if (engine == Engine::high_priority) start += costs.change_stream_ns;
  if (engine == Engine::copies && movement.is_section) start += costs.section_by_copy_ns;
  return start + moving_ns(engine, movement);
}

std::int64_t expected_gpu_ns(Engine engine, const Movement& movement) noexcept {
  return cost_of(engine, movement).gpu_ns + moving_ns(engine, movement);
}

Engine choose_engine(const Movement& movement, const Delays& delays, std::optional<Engine> forced) noexcept {
  if (forced && can_run(*forced, movement)) return *forced;
  if (forced) return Engine::kernel;
  const auto expected = [&](Engine engine) {
    return expected_ns(engine, movement) + delays[static_cast<std::size_t>(engine)];
  };
  Engine best = expected(Engine::high_priority) < expected(Engine::kernel) ? Engine::high_priority : Engine::kernel;
  if (may_copy(movement) && expected(Engine::copies) < expected(best)) best = Engine::copies;
  return best;
}

Engine choose_issued_engine(const Movement& movement, std::optional<Engine> forced) noexcept {
  if (forced) return *forced == Engine::copies && movement.copies > 0 ? Engine::copies : Engine::kernel;
  if (!may_copy(movement)) return Engine::kernel;
  const std::int64_t copies = expected_gpu_ns(Engine::copies, movement);
  const std::int64_t kernel = expected_gpu_ns(Engine::kernel, movement);
  // Where they are as good, they leave the multiprocessors to the program.
  return copies < kernel + kernel / 100 ? Engine::copies : Engine::kernel;
}

std::optional<Engine> engine_named(std::string_view name) noexcept {
  if (name == "kernel") return Engine::kernel;
  if (name == "ahead") return Engine::high_priority;
  if (name == "dma") return Engine::copies;
  return {};
}

std::optional<Engine> forced_engine() noexcept {
  static const std::optional<Engine> forced = engine_named(settings().gpu_engine);
  return forced;
}

}  // namespace gapless::pack::gpu
