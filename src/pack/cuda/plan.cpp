#include "pack/cuda/plan.hpp"

#include <array>
#include <atomic>

#include "layout/facts.hpp"
#include "pack/of_thread.hpp"

namespace gapless::pack::cuda {
namespace {

/// What a thread remembers of one (layout, repetition, device).
struct Remembered {
  const Layout* layout = nullptr;
  std::weak_ptr<const Layout> alive;
  Mode outer{0, 0};
  int device = -1;
  std::uint64_t planner = 0;
  Shape shape;
  std::shared_ptr<Descriptor> descriptor;
  bool overlap_known = false;

  bool is_for(const Job& job, int wanted_device, std::uint64_t wanted_planner) const noexcept {
    return layout == job.layout && outer == job.outer && device == wanted_device && planner == wanted_planner &&
           !alive.expired();
  }
};

Remembered& slot(const Job& job, int device) {
  constexpr std::size_t slots = 64;
  const auto mix = reinterpret_cast<std::uintptr_t>(job.layout) / alignof(Layout) / 4 +
                   static_cast<std::uintptr_t>(job.outer.count) * 7 + static_cast<std::uintptr_t>(device) * 31;
  return of_this_thread<std::array<Remembered, slots>>()[mix % slots];
}

}  // namespace

Planner::Planner(DescriptorCache& cache) : cache_(cache) {
  static std::atomic<std::uint64_t> planners{0};
  identity_ = ++planners;
}

Planner::Planned Planner::plan(const Job& job, int device, std::optional<Regime> preferred) {
  if (job.begin >= job.end) return {};
  Remembered& known = slot(job, device);
  if (!known.is_for(job, device, identity_)) {
    known = {};
    std::shared_ptr<Descriptor> descriptor;
    const bool as_tree = cache_.forced() == Regime::tree;
    if (as_tree || needs_descriptor(*job.layout)) {
      descriptor = cache_.find(*job.layout, device);
      if (!descriptor) return {{}, nullptr, true};
    }
    known.shape = descriptor
                      ? shape_of(descriptor->described(*job.layout), job.outer, descriptor->alignment_bits(), as_tree)
                      : shape_of(*job.layout, job.outer, {});
    known.descriptor = std::move(descriptor);
    known.alive = job.layout->weak_from_this();
    known.outer = job.outer;
    known.device = device;
    known.planner = identity_;
    known.layout = job.layout;
  }
  if (job.direction == Direction::unpack && !known.overlap_known) {
    known.shape.injective = layout::is_injective(*job.layout, job.outer);
    if (!known.shape.injective && !known.descriptor) {
      known.descriptor = cache_.find(*job.layout, device);
      if (!known.descriptor) {
        known = {};
        return {{}, nullptr, true};
      }
    }
    known.overlap_known = true;
  }
  const std::optional<Regime> regime = preferred ? preferred : cache_.forced();
  return {prepare(job, known.shape, known.descriptor.get(), regime), known.descriptor, false};
}

}  // namespace gapless::pack::cuda
