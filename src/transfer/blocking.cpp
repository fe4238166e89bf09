#include "transfer/blocking.hpp"

#include <exception>

#include "base/settings.hpp"
#include "pack/host/engine.hpp"

namespace gapless::transfer {

using device::MemoryKind;
using device::Status;
using pack::Direction;
using pack::Job;

Result result_of(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return Result::ok;
    case Status::out_of_memory:
      return Result::out_of_memory;
    default:
      return Result::device_failed;
  }
}

pack::Reach reach_of(Direction direction, MemoryKind packed) noexcept {
  if (packed == MemoryKind::device) return pack::Reach::this_gpu;
  return direction == Direction::pack ? pack::Reach::beyond : pack::Reach::from_beyond;
}

Result run_on_host(const Job& job) noexcept {
  try {
    pack::host::run(job);
    return Result::ok;
  } catch (const std::exception&) {
    return Result::out_of_memory;
  }
}

Result run_on_gpu(const Job& job, int device, MemoryKind packed) noexcept {
  pack::GpuEngine* engine = pack::gpu_engine();
  if (engine == nullptr) return Result::device_failed;
  return result_of(engine->run_and_wait(std::span(&job, 1), device, reach_of(job.direction, packed)));
}

Result run_on_gpu(std::span<const pack::PairJob> jobs, int device) noexcept {
  pack::GpuEngine* const engine = pack::gpu_engine();
  if (engine == nullptr) return Result::device_failed;
  pack::Ticket ticket = engine->submit(jobs, device);
  return result_of(ticket.is_under_way() ? engine->wait(ticket) : ticket.status);
}

pack::PairJob copying(const Buffer& from, const Buffer& into) noexcept {
  return {from.type->layout.get(), {from.count, from.type->extent}, from.memory,
          into.type->layout.get(), {into.count, into.type->extent}, into.memory};
}

Result wait_for_default_stream(int device, bool& was_idle) noexcept {
  device::Runtime* const runtime = device::runtime();
  was_idle = runtime != nullptr && settings().resident == "ready";
  if (was_idle) return Result::ok;
  const Status status = runtime != nullptr ? runtime->query(device, nullptr, was_idle) : Status::failed;
  return status != Status::ok || was_idle ? result_of(status) : result_of(runtime->synchronize(device, nullptr));
}

Result copy_on_gpu(void* destination, const void* source, std::size_t bytes, int device) noexcept {
  device::Runtime* runtime = device::runtime();
  void* stream = runtime != nullptr ? runtime->stream(device) : nullptr;
  if (stream == nullptr) return Result::device_failed;
  Status status = runtime->follow_default_stream(device, stream);
  if (status == Status::ok) status = runtime->copy(destination, source, bytes, device, stream);
  const Status finished = runtime->synchronize(device, stream);
  return result_of(status == Status::ok ? finished : status);
}

Result copy_packed(std::byte* into, const std::byte* packed, std::size_t bytes, int device, MemoryKind kind) noexcept {
  if (bytes == 0) return Result::ok;
  if (kind == MemoryKind::device) return copy_on_gpu(into, packed, bytes, device);
  pack::host::copy_bytes(into, packed, bytes);
  return Result::ok;
}

}  // namespace gapless::transfer
