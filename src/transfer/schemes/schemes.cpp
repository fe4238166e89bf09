// All schemes, in the order of transfer::Scheme.
#include <array>

#include "model/model.hpp"
#include "transfer/blocking.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer {
namespace {

constexpr std::array<const char*, scheme_count> names = {
    "native", "packed", "oneshot",          "staged",       "pipelined",    "device",
    "slots",  "direct", "fabric-pipelined", "gather-write", "scatter-read", "multi-write"};

}  // namespace

const char* name(Scheme scheme) noexcept { return names[static_cast<std::size_t>(scheme)]; }

namespace schemes {
namespace {

const std::array<const Base*, scheme_count> all = {&native,           &packed,       &oneshot,      &staged,
                                                   &pipelined,        &device,       &slots,        &direct,
                                                   &fabric_pipelined, &gather_write, &scatter_read, &multi_write};

}  // namespace

const Base& of(Scheme scheme) noexcept { return *all[static_cast<std::size_t>(scheme)]; }

namespace {

Result state_of(const Movement& movement) noexcept {
  return movement.ticket.is_under_way() ? Result::under_way : result_of(movement.ticket.status);
}

}  // namespace

Result start_job(Movement& movement, device::MemoryKind packed) noexcept {
  pack::GpuEngine* const engine = pack::gpu_engine();
  if (engine == nullptr) return Result::device_failed;
  const pack::Job job = movement.job();
  movement.ticket = engine->submit({&job, 1}, movement.buffer.location.device, reach_of(movement.direction, packed));
  return state_of(movement);
}

Result poll_job(Movement& movement) noexcept {
  pack::gpu_engine()->poll(movement.ticket);
  return state_of(movement);
}

Result wait_for_job(Movement& movement) noexcept {
  pack::gpu_engine()->wait(movement.ticket);
  return state_of(movement);
}

double host_message_ns(std::size_t bytes) noexcept {
  return library_reads_gpu_memory() ? model::host_message_ns(model::profile().gpu, bytes) : 0;
}

double page_locking_ns(std::size_t bytes) noexcept {
  return bytes > longest_kept_page_locked() ? model::page_locking_ns(model::profile().gpu, bytes) : 0;
}

}  // namespace schemes
}  // namespace gapless::transfer
