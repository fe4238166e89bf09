#include "pack/gpu/plan/plan.hpp"

#include <array>
#include <atomic>

#include "base/per_thread.hpp"
#include "layout/algebra/facts.hpp"

namespace gapless::pack::gpu {
namespace {

/// What a thread has cached of one (layout, repetition, device).
struct CachedShape {
  const Layout* layout = nullptr;
  std::weak_ptr<const Layout> alive;
  Mode outer{0, 0};
  int device = -1;
  std::uint64_t planner = 0;
  Shape shape;
  std::shared_ptr<Descriptor> descriptor;
  bool is_overlap_known = false;

  bool is_for(const Job& job, int wanted_device, std::uint64_t wanted_planner) const noexcept {
    return layout == job.layout && outer == job.outer && device == wanted_device && planner == wanted_planner &&
           !alive.expired();
  }
};

CachedShape& slot(const Job& job, int device) {
  constexpr std::size_t slots = 64;
  const auto mix = reinterpret_cast<std::uintptr_t>(job.layout) / alignof(Layout) / 4 +
                   static_cast<std::uintptr_t>(job.outer.count) * 7 + static_cast<std::uintptr_t>(device) * 31;
  return of_this_thread<std::array<CachedShape, slots>>()[mix % slots];
}

}  // namespace

Planner::Planner(DescriptorCache& cache) : cache_(cache) {
  static std::atomic<std::uint64_t> planners{0};
  identity_ = ++planners;
}

Planner::Planned Planner::plan(const Job& job, int device, std::optional<Regime> preferred) {
  if (job.begin >= job.end) return {};
  CachedShape& cached = slot(job, device);
  if (!cached.is_for(job, device, identity_)) {
    cached = {};
    std::shared_ptr<Descriptor> descriptor;
    const bool as_tree = cache_.forced() == Regime::tree;
    if (as_tree || needs_descriptor(*job.layout)) {
      descriptor = cache_.find(*job.layout, device);
      if (!descriptor) return {{}, nullptr, true};
    }
    cached.shape = descriptor
                       ? shape_of(descriptor->described(*job.layout), job.outer, descriptor->alignment_bits(), as_tree)
                       : shape_of(*job.layout, job.outer, {});
    cached.descriptor = std::move(descriptor);
    cached.alive = job.layout->weak_from_this();
    cached.outer = job.outer;
    cached.device = device;
    cached.planner = identity_;
    cached.layout = job.layout;
  }
  if (job.direction == Direction::unpack && !cached.is_overlap_known) {
    cached.shape.injective = layout::is_injective(*job.layout, job.outer);
    if (!cached.shape.injective && !cached.descriptor) {
      cached.descriptor = cache_.find(*job.layout, device);
      if (!cached.descriptor) {
        cached = {};
        return {{}, nullptr, true};
      }
    }
    cached.is_overlap_known = true;
  }
  const std::optional<Regime> regime = preferred ? preferred : cache_.forced();
  return {prepare(job, cached.shape, cached.descriptor.get(), regime), cached.descriptor, false};
}

}  // namespace gapless::pack::gpu
