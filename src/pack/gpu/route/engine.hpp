// Which engine moves a job's bytes, and what that is expected to take: one function of a few numbers.
//
// Kernels need multiprocessors, and get them when what was launched before has left some free; kernels in a stream of
// high priority get them first. Copy engines need none, but serve one transfer after the other in each direction of the
// bus. Within one GPU the driver makes kernels of strided copies, so there copy engines are no way out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gapless::pack::gpu {

enum class Engine : std::uint8_t {
  kernel,         ///< in the stream the job was given to
  high_priority,  ///< kernel in a stream of high priority, which first has to wait for the other
  copies,         ///< the copies of a CopyPlan
};
inline constexpr std::size_t engine_count = 3;

/// Between layouts in GPU memory and packed bytes where?
enum class Traffic : std::uint8_t { within_gpu, to_host, from_host };
inline constexpr std::size_t traffic_count = 3;

struct Movement {
  Traffic traffic = Traffic::within_gpu;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 0;   ///< of the copies
  int copies = 0;           ///< 0: it cannot be done by copies
  bool in_chunks = false;   ///< a kernel would get it in chunks; see pack/gpu/batch/chunks.hpp
  bool is_section = false;  ///< of several in succession, each of whose ends somebody waits for
};

/// Nanoseconds from the call until the CPU knows that the bytes are there, on an idle GPU.
std::int64_t expected_ns(Engine engine, const Movement& movement) noexcept;

/// Nanoseconds on the GPU behind other work, which is what counts where nobody waits for the single job.
std::int64_t expected_gpu_ns(Engine engine, const Movement& movement) noexcept;

/// Added to what is expected; see ContentionEstimator.
using Delays = std::array<std::int64_t, engine_count>;

/// The engine that is expected to be done first. `forced` is taken if it can do it.
Engine choose_engine(const Movement& movement, const Delays& delays, std::optional<Engine> forced = {}) noexcept;

/// The engine for a movement that nobody waits for: kernel or copies.
Engine choose_issued_engine(const Movement& movement, std::optional<Engine> forced = {}) noexcept;

/// kernel, ahead or dma; nothing for other words.
std::optional<Engine> engine_named(std::string_view name) noexcept;

/// What GAPLESS_GPU_ENGINE names.
std::optional<Engine> forced_engine() noexcept;

}  // namespace gapless::pack::gpu
