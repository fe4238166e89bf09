// Packing and unpacking: checks a call, finds where its bytes are, and hands it to the host or the GPU engine.
//
// GPU memory is reached in the caller's stream only, so the other side of such a job must be memory that the GPU
// addresses itself: a copy from or to pageable memory is not in stream order and may block.
#include <cinttypes>
#include <vector>

#include "api/gpu.hpp"
#include "api/placement.hpp"
#include "api/span.hpp"
#include "api/type.hpp"
#include "base/per_thread.hpp"
#include "device/device.hpp"
#include "layout/layout.hpp"
#include "pack/host/engine.hpp"

namespace gapless::api {
namespace {

/// The byte that the packed range begins with; the origin itself may be in no allocation at all.
const void* first_byte(const pack::Job& job) noexcept {
  const Offset size = job.layout->size;
  const Offset offset = job.begin / size * job.outer.stride + layout::offset_of(*job.layout, job.begin % size);
  return static_cast<const char*>(job.memory) + offset;
}

/// Finds a nonempty job's engine.
gapless_status find_engine(const pack::Job& job, Placement& placement, device::Locator* of_call = nullptr) noexcept {
  if (!device::in_use()) return GAPLESS_SUCCESS;
  device::Location memory, packed;
  locate(first_byte(job), job.packed, memory, packed, of_call);
  return place(memory, packed, "memory", "packed", placement);
}

/// Checks all that can be checked without touching memory. A job with nothing to move comes out with begin == end.
gapless_status check(const gapless_job& job, pack::Job& checked) noexcept {
  if (job.type == nullptr) return fail(GAPLESS_ERROR_ARGUMENT, "type is null");
  if (job.count < 0) return fail(GAPLESS_ERROR_ARGUMENT, "count is %" PRId64 ", must be >= 0", job.count);
  if (job.direction != GAPLESS_PACK && job.direction != GAPLESS_UNPACK) {
    return fail(GAPLESS_ERROR_ARGUMENT, "direction is neither GAPLESS_PACK nor GAPLESS_UNPACK");
  }
  const layout::Datatype& datatype = job.type->datatype;
  Span span;
  if (!span_of(datatype, job.count, span)) {
    return fail(GAPLESS_ERROR_OVERFLOW, "%" PRId64 " repetitions of the type do not fit in 63 bits", job.count);
  }
  if (job.begin < 0 || job.begin > job.end || job.end > span.size) {
    return fail(GAPLESS_ERROR_RANGE, "[%" PRId64 ", %" PRId64 ") is not within the %" PRId64 " packed bytes", job.begin,
                job.end, span.size);
  }
  if (job.begin < job.end && (job.memory == nullptr || job.packed == nullptr)) {
    return fail(GAPLESS_ERROR_ARGUMENT, "%s is null", job.memory == nullptr ? "memory" : "packed");
  }
  checked = {datatype.layout.get(),
             {job.count, datatype.extent()},
             job.begin,
             job.end,
             job.direction == GAPLESS_PACK ? pack::Direction::pack : pack::Direction::unpack,
             job.memory,
             job.packed};
  return GAPLESS_SUCCESS;
}

gapless_status run_on_gpu(std::span<const pack::Job> jobs, int device, void* stream) {
  return on_gpu(device, [&](pack::GpuEngine& engine) { return engine.run(jobs, device, stream); });
}

gapless_status run_one(const gapless_job& job, void* stream) noexcept {
  return guard([&] {
    pack::Job checked;
    Placement placement;
    if (gapless_status status = check(job, checked)) return status;
    if (checked.begin == checked.end) return GAPLESS_SUCCESS;
    if (gapless_status status = find_engine(checked, placement)) return status;
    if (placement.on_gpu) return run_on_gpu({&checked, 1}, placement.device, stream);
    pack::host::run(checked);
    return GAPLESS_SUCCESS;
  });
}

/// Kept by each thread, so that a batch of a size seen before allocates nothing.
struct Batch {
  std::vector<pack::Job> host;
  std::vector<pack::Job> gpu;
  Placement placement;
};

gapless_status add_to_batch(const gapless_job& job, device::Locator& locator, Batch& batch) {
  pack::Job checked;
  Placement placement;
  if (gapless_status status = check(job, checked)) return status;
  if (checked.begin == checked.end) return GAPLESS_SUCCESS;
  if (gapless_status status = find_engine(checked, placement, &locator)) return status;
  (placement.on_gpu ? batch.gpu : batch.host).push_back(checked);
  if (!placement.on_gpu) return GAPLESS_SUCCESS;

  return merge(placement, batch.placement);
}

}  // namespace
}  // namespace gapless::api

using namespace gapless;
using namespace gapless::api;

extern "C" {

gapless_status gapless_pack(const gapless_type* type, int64_t count, const void* memory, int64_t begin, int64_t end,
                            void* packed, void* stream) {
  return run_one({type, count, const_cast<void*>(memory), begin, end, packed, GAPLESS_PACK}, stream);
}

gapless_status gapless_unpack(const gapless_type* type, int64_t count, void* memory, int64_t begin, int64_t end,
                              const void* packed, void* stream) {
  return run_one({type, count, memory, begin, end, const_cast<void*>(packed), GAPLESS_UNPACK}, stream);
}

gapless_status gapless_pack_batch(const gapless_job* jobs, size_t job_count, void* stream) {
  return guard([&] {
    if (job_count > 0) require(jobs, "jobs");
    auto& batch = of_this_thread<Batch>();
    batch.host.clear();
    batch.gpu.clear();
    batch.placement = {};
    device::Locator locator;
    for (size_t i = 0; i < job_count; ++i) {
      if (gapless_status status = add_to_batch(jobs[i], locator, batch)) return fail_in_job(status, i);
    }
    // The GPU's work first: it proceeds while the host moves its own.
    if (!batch.gpu.empty()) {
      if (gapless_status status = run_on_gpu(batch.gpu, batch.placement.device, stream)) return status;
    }
    pack::host::run(batch.host);
    return GAPLESS_SUCCESS;
  });
}
}
