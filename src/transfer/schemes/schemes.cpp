// All schemes, and movements of several messages by one launch.
#include <array>
#include <new>
#include <vector>

#include "transfer/blocking.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer {

namespace {

constexpr std::array<const char*, scheme_count> names = {"native", "packed", "oneshot", "staged"};

}  // namespace

const char* name(Scheme scheme) noexcept { return names[static_cast<std::size_t>(scheme)]; }

namespace schemes {
namespace {

/// In the order of transfer::Scheme.
const std::array<const Base*, scheme_count> all = {&native, &packed, &oneshot, &staged};

bool joins(const Pending& pending, const Pending& first) noexcept {
  return pending.result == Result::under_way && pending.scheme == Scheme::oneshot &&
         pending.movement->direction == first.movement->direction &&
         pending.movement->buffer.location.device == first.movement->buffer.location.device;
}

/// The first, and all behind it that can go with it, in one batch. Throws std::bad_alloc.
void run_batch(std::span<Pending> movements) {
  pack::GpuEngine* const engine = pack::gpu_engine();
  if (engine == nullptr) return;
  const Pending first = movements.front();
  std::vector<pack::Job> jobs;
  for (const Pending& pending : movements) {
    if (joins(pending, first)) jobs.push_back(pending.movement->job());
  }
  const auto reach = reach_of(first.movement->direction, device::MemoryKind::pinned);
  const Result result = result_of(engine->run_and_wait(jobs, first.movement->buffer.location.device, reach));
  for (Pending& pending : movements) {
    if (joins(pending, first)) pending.result = result;
  }
}

}  // namespace

const Base& of(Scheme scheme) noexcept { return *all[static_cast<std::size_t>(scheme)]; }

void run_together(std::span<Pending> movements) noexcept {
  for (std::size_t i = 0; i < movements.size(); ++i) {
    Pending& pending = movements[i];
    if (pending.result != Result::under_way) continue;
    if (pending.scheme == Scheme::oneshot && i + 1 < movements.size()) {
      try {
        run_batch(movements.subspan(i));
        if (pending.result != Result::under_way) continue;
      } catch (const std::bad_alloc&) {
        // Then one by one.
      }
    }
    const Base& scheme = of(pending.scheme);
    pending.result = scheme.start(*pending.movement);
    if (pending.result == Result::under_way) pending.result = scheme.wait(*pending.movement);
  }
}

}  // namespace schemes
}  // namespace gapless::transfer
