#include "transfer/parts.hpp"

#include <exception>
#include <vector>

#include "pack/host/engine.hpp"
#include "transfer/blocking.hpp"
#include "transfer/packing.hpp"
#include "transfer/report/report.hpp"

namespace gapless::transfer {
namespace {

using pack::Direction;
using pack::Job;

Result move_one(Direction direction, const PackedPart& part, device::Location packed) noexcept {
  if (part.buffer == nullptr) return Result::ok;
  return direction == Direction::pack ? pack(*part.buffer, part.packed, packed)
                                      : unpack(*part.buffer, part.packed, packed);
}

Result move_each(Direction direction, std::span<const PackedPart> parts, device::Location packed) noexcept {
  for (const PackedPart& part : parts) {
    if (const Result result = move_one(direction, part, packed); result != Result::ok) return result;
  }
  return Result::ok;
}

Job job_of(Direction direction, const PackedPart& part) noexcept {
  return part.buffer->job(direction, 0, part.buffer->size(), part.packed);
}

Result run_together(Direction direction, std::span<const PackedPart> parts, int gpu, device::Location packed) {
  pack::GpuEngine* const engine = pack::gpu_engine();
  if (engine == nullptr) return Result::device_failed;
  const Side side = direction == Direction::pack ? Side::sender : Side::receiver;
  const Scheme scheme = packed.kind == device::MemoryKind::device ? Scheme::device : Scheme::oneshot;
  std::vector<Job> jobs;
  jobs.reserve(parts.size());
  for (const PackedPart& part : parts) {
    if (part.buffer == nullptr) continue;
    jobs.push_back(job_of(direction, part));
    record_moved(*part.buffer, side, scheme);
  }
  return result_of(engine->run_and_wait(jobs, gpu, reach_of(direction, packed.kind)));
}

}  // namespace

int gpu_of_all(std::span<const PackedPart> parts) noexcept {
  int gpu = -1;
  for (const PackedPart& part : parts) {
    if (part.buffer == nullptr) continue;
    const device::Location& location = part.buffer->location;
    if (location.is_cpu_addressable() || (gpu >= 0 && location.device != gpu)) return -1;
    gpu = location.device;
  }
  return gpu;
}

Result move_parts(Direction direction, std::span<const PackedPart> parts, device::Location packed) noexcept {
  const int gpu = parts.size() > 1 ? gpu_of_all(parts) : -1;
  if (gpu < 0 || !packed.is_gpu_addressable(gpu)) return move_each(direction, parts, packed);
  try {
    return run_together(direction, parts, gpu, packed);
  } catch (const std::exception&) {
    return move_each(direction, parts, packed);
  }
}

Result copy_on_host(const Buffer& from, const Buffer& to) noexcept {
  record_moved(from, Side::sender, Scheme::packed);
  try {
    pack::host::copy(*from.type->layout, {from.count, from.type->extent}, from.memory, *to.type->layout,
                     {to.count, to.type->extent}, to.memory);
    return Result::ok;
  } catch (const std::exception&) {
    return Result::out_of_memory;
  }
}

}  // namespace gapless::transfer
