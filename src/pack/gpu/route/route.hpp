// The way of a call's jobs: which engine, and what was learnt from the ways before.
#pragma once

#include <array>
#include <span>

#include "device/location.hpp"
#include "pack/gpu/route/contention.hpp"
#include "pack/gpu/route/copy_plan.hpp"
#include "pack/gpu_engine.hpp"

namespace gapless::pack::gpu {

/// movement.in_chunks holds only if the job is to go in chunks.
struct Route {
  Engine engine = Engine::kernel;
  Movement movement;
  CopyPlan copies;
};

/// Is unpacking the job chunk by chunk (pack/gpu/batch/chunks.hpp) faster than a kernel that reads host memory itself?
bool pays_in_chunks(const Job& job, Traffic traffic) noexcept;

class Router {
 public:
  explicit Router(std::optional<Engine> forced = forced_engine()) { force(forced); }

  /// Nothing is learnt while an engine is forced.
  void force(std::optional<Engine> engine) noexcept {
    forced_.store(engine ? static_cast<int>(*engine) : -1, std::memory_order_relaxed);
  }

  /// For jobs that are waited for; `is_section`: one of several in succession.
  Route route_waited(std::span<const Job> jobs, int device, Reach reach, bool is_section = false) const noexcept;
  /// For a job that is not; `packed`: where its packed bytes are.
  Route route_issued(const Job& job, const device::Location& packed) const noexcept;
  /// Can route_issued() be anything but a kernel? Where not, nobody needs to ask where the bytes are.
  bool has_choice(const Job& job) const noexcept;

  bool should_ask(const Route& route, int device) const noexcept;
  /// A call that was waited for has gone the route.
  void note(const Route& route, int device, std::int64_t elapsed_ns, Before before) noexcept;

 private:
  static constexpr std::size_t most_devices = 16;

  void describe(const Job& job, Route& route) const noexcept;

  const ContentionEstimator& of(int device) const noexcept {
    return contention_[static_cast<std::size_t>(device) % most_devices];
  }

  std::optional<Engine> forced() const noexcept {
    const int engine = forced_.load(std::memory_order_relaxed);
    return engine < 0 ? std::nullopt : std::optional(static_cast<Engine>(engine));
  }

  std::atomic<int> forced_;
  std::array<ContentionEstimator, most_devices> contention_;
};

}  // namespace gapless::pack::gpu
