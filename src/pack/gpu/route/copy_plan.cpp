#include "pack/gpu/route/copy_plan.hpp"

#include "pack/gpu/plan/shape.hpp"
#include "pack/gpu/route/job_runs.hpp"

namespace gapless::pack::gpu {
namespace {

/// cudaDevAttrMaxPitch; rows in a plane are counted in the same type by some drivers.
constexpr Offset longest_distance = (Offset{1} << 31) - 1;

/// Cuts a byte range of a nest of modes into boxes, in packed order.
class Cutter {
 public:
  Cutter(const Shape& shape, const Job& job, CopyPlan& plan)
      : shape_(shape), plan_(plan), packed_(reinterpret_cast<std::uintptr_t>(job.packed)) {
    sizes_[0] = shape.length;
    for (int i = 0; i < shape.mode_count; ++i) sizes_[i + 1] = sizes_[i] * shape.modes[i].count;
  }

  /// Packed bytes [begin, end) of the first `level` modes, whose origin is at `memory`.
  bool cut(int level, std::uintptr_t memory, Offset begin, Offset end) {
    if (begin >= end) return true;
    if (level == 0) return add(memory + unsigned_(begin), end - begin, 1, 1, 0, 0);
    const Offset unit = sizes_[level - 1];
    const Offset first = (begin + unit - 1) / unit, last = end / unit;
    if (first > last) return cut(level - 1, unit_at(level, memory, last), begin - last * unit, end - last * unit);
    const Offset head = first * unit - begin, tail = end - last * unit;
    return (head == 0 || cut(level - 1, unit_at(level, memory, first - 1), unit - head, unit)) &&
           cut_whole(level, memory, first, last) && cut(level - 1, unit_at(level, memory, last), 0, tail);
  }

 private:
  std::uintptr_t unit_at(int level, std::uintptr_t memory, Offset i) const {
    return memory + unsigned_(i) * unsigned_(shape_.modes[level - 1].stride);
  }

  /// Units [first, last) of a level.
  bool cut_whole(int level, std::uintptr_t memory, Offset first, Offset last) {
    if (last > first && level <= 2 && is_box(level)) {
      const std::uintptr_t at = unit_at(level, memory, first);
      const Offset stride = shape_.modes[level - 1].stride;
      return level == 1 ? add(at, shape_.length, last - first, 1, stride, 0)
                        : add(at, shape_.length, shape_.modes[0].count, last - first, shape_.modes[0].stride, stride);
    }
    if (last - first > most_copies) return false;
    for (Offset i = first; i < last; ++i) {
      if (!cut(level - 1, unit_at(level, memory, i), 0, sizes_[level - 1])) return false;
    }
    return true;
  }

  bool is_box(int level) const {
    const Offset row_distance = shape_.modes[0].stride;
    if (row_distance < shape_.length || row_distance > longest_distance) return false;
    if (level == 1) return true;
    const Offset rows = shape_.modes[1].stride / row_distance;
    return shape_.modes[1].stride % row_distance == 0 && rows >= shape_.modes[0].count && rows <= longest_distance;
  }

  bool add(std::uintptr_t memory, Offset row, Offset rows, Offset planes, Offset row_distance, Offset plane_distance) {
    if (plan_.count == most_copies) return false;
    plan_.copies[plan_.count++] = {memory,
                                   packed_,
                                   unsigned_(row),
                                   unsigned_(rows),
                                   unsigned_(planes),
                                   unsigned_(row_distance),
                                   unsigned_(plane_distance)};
    packed_ += unsigned_(row * rows * planes);
    plan_.rows += unsigned_(rows * planes);
    return true;
  }

  const Shape& shape_;
  CopyPlan& plan_;
  std::uintptr_t packed_;  ///< where the next copy's bytes lie
  Offset sizes_[max_levels + 1];
};

/// Lists and sums: as many copies as runs.
bool plan_list(const Job& job, CopyPlan& plan) noexcept {
  std::uintptr_t packed = reinterpret_cast<std::uintptr_t>(job.packed);
  const auto add = [&](std::uintptr_t memory, Offset bytes) {
    if (plan.count == most_copies) return false;
    plan.copies[plan.count++] = {memory, packed, unsigned_(bytes), 1, 1, 0, 0};
    ++plan.rows;
    packed += unsigned_(bytes);
    return true;
  };
  return JobRuns(add).visit(job);
}

}  // namespace

bool plan_copies(const Job& job, CopyPlan& plan) noexcept {
  plan.count = 0;
  plan.rows = 0;
  plan.unpack = job.direction == Direction::unpack;
  if (job.begin >= job.end) return true;
  if (needs_descriptor(*job.layout)) return plan_list(job, plan);
  const Shape shape = shape_of(*job.layout, job.outer, {});
  const std::uintptr_t origin = reinterpret_cast<std::uintptr_t>(job.memory) + unsigned_(shape.base);
  return Cutter(shape, job, plan).cut(shape.mode_count, origin, job.begin, job.end);
}

}  // namespace gapless::pack::gpu
