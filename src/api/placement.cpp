// The rules of placement.hpp.
#include "api/placement.hpp"

namespace gapless::api {

using device::MemoryKind;

Placement placement_of(const device::Location& location) noexcept {
  switch (location.kind) {
    case MemoryKind::device:
      return {true, true, location.device};
    case MemoryKind::managed:
      return {true, false, location.device};
    case MemoryKind::host:
    case MemoryKind::pinned:
      break;
  }
  return {};
}

gapless_status merge(const Placement& part, Placement& whole) noexcept {
  if (!part.on_gpu) return GAPLESS_SUCCESS;
  if (part.is_bound && whole.is_bound && part.device != whole.device) {
    return fail(GAPLESS_ERROR_UNSUPPORTED, "memory of GPU %d and of GPU %d in one call", whole.device, part.device);
  }
  if (!whole.on_gpu || part.is_bound) whole.device = part.device;
  whole.on_gpu = true;
  whole.is_bound |= part.is_bound;
  return GAPLESS_SUCCESS;
}

gapless_status place(const device::Location& one, const device::Location& other, const char* name_of_one,
                     const char* name_of_other, Placement& placement) noexcept {
  placement = placement_of(one);
  if (gapless_status status = merge(placement_of(other), placement)) return status;
  if (placement.on_gpu && (one.kind == MemoryKind::host || other.kind == MemoryKind::host)) {
    const char* ordinary = one.kind == MemoryKind::host ? name_of_one : name_of_other;
    return fail(GAPLESS_ERROR_MEMORY_KIND,
                "%s is ordinary host memory and the other side is GPU memory: asynchronous copies of ordinary host "
                "memory are not in stream order; use page-locked, managed or GPU memory for %s",
                ordinary, ordinary);
  }
  return GAPLESS_SUCCESS;
}

}  // namespace gapless::api
