#include "transfer/rings/sections.hpp"

#include "transfer/blocking.hpp"
#include "transfer/filling.hpp"

namespace gapless::transfer::rings {

void Sections::begin_next() noexcept {
  pack::Job job = whole_;
  job.begin = next_byte();
  job.end = std::min(whole_.end, job.begin + static_cast<layout::Offset>(ring_.section_bytes));
  job.packed = static_cast<std::byte*>(whole_.packed) + begun_ % ring_.sections * ring_.section_bytes;
  pack::Ticket& ticket = tickets_[begun_ % most_sections];
  ++begun_;
  ticket = {};
  if (device_ == no_gpu) {
    const Result result = fill(job, reader_);
    ticket.status = result == Result::ok ? device::Status::ok : device::Status::out_of_memory;
    ticket.ends_with_queue = true;  // is done, and is told of before the next one begins
    return;
  }
  pack::GpuEngine* const engine = pack::gpu_engine();
  if (engine != nullptr) {
    ticket = engine->submit_section(job, device_, reach_);
  } else {
    ticket.status = device::Status::failed;
  }
}

bool Sections::is_oldest_done() noexcept {
  pack::Ticket& ticket = tickets_[ended_ % most_sections];
  if (ticket.is_under_way()) pack::gpu_engine()->poll(ticket);
  return !ticket.is_under_way();
}

Result Sections::end_oldest() noexcept {
  pack::Ticket& ticket = tickets_[ended_++ % most_sections];
  if (ticket.is_under_way()) static_cast<void>(pack::gpu_engine()->wait(ticket));
  return result_of(ticket.status);
}

void Sections::move_to(const layout::Layout& contiguous, void* memory, pack::Reach reach) noexcept {
  whole_.layout = &contiguous;
  whole_.outer = {1, contiguous.size};
  whole_.memory = memory;
  reach_ = reach;
}

}  // namespace gapless::transfer::rings
