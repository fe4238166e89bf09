// The way of a call's jobs: which engine, and what was learnt from the ways before.
#pragma once

#include <array>
#include <span>

#include "device/device.hpp"
#include "pack/cuda/copy_plan.hpp"
#include "pack/cuda/punctuality.hpp"
#include "pack/cuda/run_copies.hpp"

namespace gapless::pack::cuda {

/// movement.in_chunks holds only if the job is to go in chunks.
struct Route {
  Engine engine = Engine::kernel;
  Movement movement;
  CopyPlan copies;                  ///< of 0 where the runs, if any, are all there is
  const RunCopies* runs = nullptr;  ///< rather than those; until this thread's next route
};

class Router {
 public:
  explicit Router(std::optional<Engine> forced = forced_engine()) { force(forced); }

  /// Nothing is learnt while an engine is forced.
  void force(std::optional<Engine> engine) noexcept {
    forced_.store(engine ? static_cast<int>(*engine) : -1, std::memory_order_relaxed);
  }

  /// For jobs that are waited for.
  Route route_waited(std::span<const Job> jobs, int device, device::Reach reach) const noexcept;
  /// For a job that is not; `packed`: where its packed bytes are.
  Route route_issued(const Job& job, const device::Location& packed) const noexcept;
  /// Can route_issued() be anything but a kernel? Where not, nobody needs to ask where the bytes are.
  bool has_choice(const Job& job) const noexcept;

  bool should_ask(const Route& route, int device) const noexcept;
  /// A call that was waited for has gone the route.
  void note(const Route& route, int device, std::int64_t elapsed_ns, Before before) noexcept;

 private:
  static constexpr std::size_t remembered_devices = 16;

  void describe(const Job& job, Route& route) const noexcept;

  const Punctuality& of(int device) const noexcept {
    return punctuality_[static_cast<std::size_t>(device) % remembered_devices];
  }

  std::optional<Engine> forced() const noexcept {
    const int engine = forced_.load(std::memory_order_relaxed);
    return engine < 0 ? std::nullopt : std::optional(static_cast<Engine>(engine));
  }

  std::atomic<int> forced_;
  std::array<Punctuality, remembered_devices> punctuality_;
};

}  // namespace gapless::pack::cuda
