// gapless_copy: from one type's bytes to another's, on the host or in one kernel.
#include <cinttypes>

#include "api/gpu.hpp"
#include "api/placement.hpp"
#include "api/span.hpp"
#include "api/type.hpp"
#include "pack/host/engine.hpp"

namespace gapless::api {
namespace {

gapless_status check_copy_side(const gapless_type* type, std::int64_t count, const void* memory, const char* side,
                               Span& span) noexcept {
  if (type == nullptr) return fail(GAPLESS_ERROR_ARGUMENT, "%s_type is null", side);
  if (count < 0) return fail(GAPLESS_ERROR_ARGUMENT, "%s_count is %" PRId64 ", must be >= 0", side, count);
  if (!span_of(type->datatype, count, span)) {
    return fail(GAPLESS_ERROR_OVERFLOW, "%" PRId64 " repetitions of %s_type do not fit in 63 bits", count, side);
  }
  if (span.size > 0 && memory == nullptr) return fail(GAPLESS_ERROR_ARGUMENT, "%s_memory is null", side);
  return GAPLESS_SUCCESS;
}

/// The GPU that copies between the two: the source's, which then writes to the other's memory, where either is bound to
/// one. `peer` is the other one, or the same.
gapless_status find_gpus(const device::Location& source, const device::Location& destination, int& device,
                         int& peer) noexcept {
  const Placement from = placement_of(source), to = placement_of(destination);
  device = peer = from.on_gpu ? from.device : to.device;
  if (from.is_bound && to.is_bound) {
    peer = to.device;
    return GAPLESS_SUCCESS;
  }
  Placement both;
  if (gapless_status status = place(source, destination, "source_memory", "destination_memory", both)) return status;
  device = peer = both.device;
  return GAPLESS_SUCCESS;
}

gapless_status copy_on_gpu(const pack::PairJob& job, int device, int peer, void* stream) {
  return on_gpu(device, [&](pack::GpuEngine& engine) {
    const device::Status status = device::runtime()->enable_peer(device, peer);
    return status == device::Status::ok ? engine.copy(job, device, stream) : status;
  });
}

gapless_status run_copy(const pack::PairJob& job, Offset first_of_source, Offset first_of_destination, void* stream) {
  if (device::in_use()) {
    device::Location source, destination;
    locate(static_cast<const char*>(job.source_memory) + first_of_source,
           static_cast<const char*>(job.destination_memory) + first_of_destination, source, destination);
    if (placement_of(source).on_gpu || placement_of(destination).on_gpu) {
      int device = -1, peer = -1;
      if (gapless_status status = find_gpus(source, destination, device, peer)) return status;
      return copy_on_gpu(job, device, peer, stream);
    }
  }
  pack::host::copy(*job.source, job.source_outer, job.source_memory, *job.destination, job.destination_outer,
                   job.destination_memory);
  return GAPLESS_SUCCESS;
}

}  // namespace
}  // namespace gapless::api

using namespace gapless;
using namespace gapless::api;

extern "C" gapless_status gapless_copy(const gapless_type* source_type, int64_t source_count, const void* source_memory,
                                       const gapless_type* destination_type, int64_t destination_count,
                                       void* destination_memory, void* stream) {
  return guard([&] {
    Span source, destination;
    if (auto status = check_copy_side(source_type, source_count, source_memory, "source", source)) return status;
    if (auto status =
            check_copy_side(destination_type, destination_count, destination_memory, "destination", destination)) {
      return status;
    }
    if (source.size != destination.size) {
      return fail(GAPLESS_ERROR_ARGUMENT, "the source has %" PRId64 " packed bytes and the destination %" PRId64,
                  source.size, destination.size);
    }
    if (source.size == 0) return GAPLESS_SUCCESS;
    const layout::Datatype &from = source_type->datatype, &to = destination_type->datatype;
    const pack::PairJob job{from.layout.get(), {source_count, from.extent()},    source_memory,
                            to.layout.get(),   {destination_count, to.extent()}, destination_memory};
    return run_copy(job, source.first, destination.first, stream);
  });
}
