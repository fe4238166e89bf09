#include "pack/cuda/engine.hpp"

#include <algorithm>
#include <cstdlib>

#include "pack/cuda/run_copies.hpp"

namespace gapless::pack::cuda {
namespace {

/// Of one engine and direction. Medians of an H200 on PCIe 5; docs/performance.md, "Copy engines", has the table.
/// Elsewhere only their ratios matter.
struct Cost {
  std::int64_t waited_ns;  ///< of a call that moves nothing, until the CPU knows that it is done
  std::int64_t gpu_ns;     ///< the same on the GPU, behind other work
  std::int64_t bytes_per_us;
};

constexpr Cost kernel_costs[traffic_count] = {{6'300, 1'200, 500'000}, {6'800, 200, 52'200}, {7'700, 1'000, 51'000}};
constexpr Cost chunks_cost = {20'500, 15'000, 54'000};
constexpr Cost copy_costs[traffic_count] = {{10'500, 2'600, 500'000}, {7'600, 2'600, 55'200}, {8'400, 2'600, 55'200}};
constexpr std::int64_t next_copy_ns = 2'600;      // of a further copy
constexpr std::int64_t change_stream_ns = 1'000;  // to be ahead, or to where runs can be copied

/// What a row takes a copy engine beside its bytes, and at least, in picoseconds.
struct RowCost {
  std::int64_t beside_bytes;
  std::int64_t least;
};
constexpr RowCost row_costs[traffic_count] = {{0, 15'000}, {150, 1'260}, {190, 2'300}};
constexpr std::int64_t split_row_picoseconds = 1'000;  // of a row that is no whole number of sectors

/// What a run takes the call that copies it. Shorter ones to the GPU take it longer, and the longer the more bytes
/// there are, as if the driver moved those itself.
constexpr std::int64_t run_ns = 420, short_run_ns = 1'000, short_run_bytes_per_us = 18'000;
constexpr std::uint64_t long_run = 64 << 10;

std::int64_t further_copies_ns(const Movement& movement) { return (movement.copies - 1) * next_copy_ns; }

std::int64_t rows_ns(const Movement& movement) {
  constexpr std::uint64_t sector = 32;
  const RowCost& cost = row_costs[static_cast<std::size_t>(movement.traffic)];
  const auto rows = static_cast<std::int64_t>(movement.rows), bytes = static_cast<std::int64_t>(movement.bytes);
  const bool splits = movement.bytes % (sector * std::max<std::uint64_t>(movement.rows, 1)) != 0;
  const std::int64_t beside = cost.beside_bytes + (splits ? split_row_picoseconds : 0);
  const std::int64_t bytes_ns = bytes * 1000 / copy_costs[static_cast<std::size_t>(movement.traffic)].bytes_per_us;
  return std::max(rows * beside / 1000, rows * cost.least / 1000 - bytes_ns);
}

const Cost& cost_of(Engine engine, const Movement& movement) {
  const auto traffic = static_cast<std::size_t>(movement.traffic);
  if (engine == Engine::copies) return copy_costs[traffic];
  return movement.in_chunks ? chunks_cost : kernel_costs[traffic];
}

std::int64_t bytes_ns(Engine engine, const Movement& movement) {
  return static_cast<std::int64_t>(movement.bytes) * 1000 / cost_of(engine, movement).bytes_per_us;
}

/// The CPU's time of the calls that copy runs.
std::int64_t calling_ns(const Movement& movement) {
  const auto runs = static_cast<std::int64_t>(movement.rows), bytes = static_cast<std::int64_t>(movement.bytes);
  const bool are_short = movement.traffic == Traffic::from_host && movement.bytes < long_run * movement.rows;
  return are_short ? runs * short_run_ns + bytes * 1000 / short_run_bytes_per_us : runs * run_ns;
}

/// While the copy engine is busy with the runs of one call the CPU makes the next; the first call or the last copies
/// coincide with nothing.
std::int64_t runs_ns(const Movement& movement) {
  const std::int64_t calling = calling_ns(movement), copying = bytes_ns(Engine::copies, movement);
  constexpr auto at_a_time = static_cast<std::int64_t>(runs_in_a_call);
  const std::int64_t runs = std::max(static_cast<std::int64_t>(movement.rows), at_a_time);
  return std::max(calling, copying) + std::min(calling, copying) * at_a_time / runs;
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
  const std::int64_t start = cost_of(engine, movement).waited_ns;
  if (engine == Engine::copies && movement.by_runs) return start + change_stream_ns + runs_ns(movement);
  return start + moving_ns(engine, movement) + (engine == Engine::ahead ? change_stream_ns : 0);
}

std::int64_t expected_gpu_ns(Engine engine, const Movement& movement) noexcept {
  const std::int64_t start = cost_of(engine, movement).gpu_ns;
  // The caller does not wait for the bytes, but for the calls.
  if (engine == Engine::copies && movement.by_runs) return start + calling_ns(movement) + bytes_ns(engine, movement);
  return start + moving_ns(engine, movement);
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
  // Where they are as good, they leave the multiprocessors to the program.
  return copies < kernel + kernel / 100 ? Engine::copies : Engine::kernel;
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
