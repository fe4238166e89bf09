#include "pack/cuda/engine.hpp"

#include <algorithm>
#include <cstdlib>

namespace gapless::pack::cuda {
namespace {

/// Of one engine and direction. Medians of an H200 on PCIe 5; docs/performance.md, "Copy engines", has the table.
/// Elsewhere only their ratios matter.
struct Cost {
  std::int64_t waited_ns;              ///< from the call until the CPU knows the end of nothing
  std::int64_t gpu_ns;                 ///< between two that follow each other
  std::int64_t bytes_per_us;           ///<
  std::int64_t row_picoseconds;        ///< of a row beside its bytes
  std::int64_t least_row_picoseconds;  ///< rows shorter than this takes are no faster
};

constexpr Cost kernel_costs[traffic_count] = {
    {8'300, 1'200, 500'000, 0, 0}, {8'100, 200, 52'200, 0, 0}, {8'900, 1'000, 51'000, 0, 0}};
constexpr Cost copy_costs[traffic_count] = {
    {9'000, 2'600, 500'000, 0, 15'000}, {7'100, 2'600, 55'200, 150, 1'260}, {8'200, 2'600, 55'200, 190, 2'300}};
constexpr std::int64_t next_copy_ns = 2'600;    // of a further copy
constexpr std::int64_t change_stream_ns = 700;  // to be ahead

std::int64_t moving_ns(const Cost& cost, const Movement& movement) {
  const auto bytes = static_cast<std::int64_t>(movement.bytes), rows = static_cast<std::int64_t>(movement.rows);
  const std::int64_t bytes_ns = bytes * 1000 / cost.bytes_per_us;
  return std::max(bytes_ns + rows * cost.row_picoseconds / 1000, rows * cost.least_row_picoseconds / 1000);
}

const Cost& cost_of(Engine engine, const Movement& movement) {
  return (engine == Engine::copies ? copy_costs : kernel_costs)[static_cast<std::size_t>(movement.traffic)];
}

std::int64_t further_copies_ns(Engine engine, const Movement& movement) {
  return engine == Engine::copies ? (movement.copies - 1) * next_copy_ns : 0;
}

/// On the driver's own word, strided copies within a GPU are kernels too: never better than ours.
bool may_copy(const Movement& movement) { return movement.copies > 0 && movement.traffic != Traffic::within_gpu; }

bool can_run(Engine engine, const Movement& movement) { return engine != Engine::copies || movement.copies > 0; }

}  // namespace

std::int64_t expected_ns(Engine engine, const Movement& movement) noexcept {
  const Cost& cost = cost_of(engine, movement);
  return cost.waited_ns + moving_ns(cost, movement) + further_copies_ns(engine, movement) +
         (engine == Engine::ahead ? change_stream_ns : 0);
}

std::int64_t expected_gpu_ns(Engine engine, const Movement& movement) noexcept {
  const Cost& cost = cost_of(engine, movement);
  return cost.gpu_ns + moving_ns(cost, movement) + further_copies_ns(engine, movement);
}

Engine choose_engine(const Movement& movement, const Delays& delays, std::optional<Engine> forced) noexcept {
  if (forced && can_run(*forced, movement)) return *forced;
  if (forced) return Engine::kernel;
  const auto expected = [&](Engine engine) {
    return expected_ns(engine, movement) + delays[static_cast<std::size_t>(engine)];
  };
  Engine best = expected(Engine::ahead) < expected(Engine::kernel) ? Engine::ahead : Engine::kernel;
  if (may_copy(movement) && expected(Engine::copies) < expected(best)) best = Engine::copies;
  return best;
}

Engine choose_issued_engine(const Movement& movement, std::optional<Engine> forced) noexcept {
  if (forced) return *forced == Engine::copies && movement.copies > 0 ? Engine::copies : Engine::kernel;
  if (!may_copy(movement)) return Engine::kernel;
  const std::int64_t copies = expected_gpu_ns(Engine::copies, movement);
  const std::int64_t kernel = expected_gpu_ns(Engine::kernel, movement);
  // They leave the multiprocessors to the program.
  return copies < kernel + kernel / 20 ? Engine::copies : Engine::kernel;
}

std::optional<Engine> engine_named(std::string_view name) noexcept {
  if (name == "kernel") return Engine::kernel;
  if (name == "ahead") return Engine::ahead;
  if (name == "dma") return Engine::copies;
  return {};
}

std::optional<Engine> forced_engine() noexcept {
  static const std::optional<Engine> forced = [] {
    const char* name = std::getenv("GAPLESS_GPU_ENGINE");
    return name != nullptr ? engine_named(name) : std::nullopt;
  }();
  return forced;
}

}  // namespace gapless::pack::cuda
