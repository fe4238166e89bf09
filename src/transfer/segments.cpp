#include "transfer/segments.hpp"

#include <algorithm>
#include <utility>

#include "model/gpu.hpp"
#include "pack/host/engine.hpp"
#include "transfer/blocking.hpp"

namespace gapless::transfer {

using device::MemoryKind;
using pack::Offset;

namespace {

std::size_t bytes_of_segment(std::size_t bytes) noexcept {
  return std::min(bytes, static_cast<std::size_t>(model::gpu_tuning.segment_bytes));
}

}  // namespace

Segments::~Segments() { static_cast<void>(close(Result::ok)); }

bool Segments::are_to_be_had(int device, std::size_t bytes) noexcept {
  return static_cast<bool>(PoolBuffer::indispensable(device, bytes_of_segment(bytes)));
}

Result Segments::begin(const pack::Job& job, int device) noexcept {
  job_ = job;
  device_ = device;
  issued_ = ended_ = 0;
  next_ = allowed_ = moved_ = job.begin;
  const auto bytes = static_cast<std::size_t>(job.end - job.begin);
  segment_bytes_ = bytes_of_segment(bytes);
  if (bytes == 0) return Result::ok;
  const std::size_t wanted = std::min(most_segments, (bytes + segment_bytes_ - 1) / segment_bytes_);
  for (segment_count_ = 0; segment_count_ < wanted; ++segment_count_) {
    PoolBuffer memory = segment_count_ == 0 ? PoolBuffer::indispensable(device, segment_bytes_)
                                            : PoolBuffer(MemoryKind::pinned, device, segment_bytes_);
    if (!memory) break;
    segments_[segment_count_].memory = std::move(memory);
  }
  if (segment_count_ > 0) return Result::ok;
  return device::runtime() == nullptr ? Result::device_failed : Result::out_of_memory;
}

std::byte* Segments::packed_at(Offset begin) const noexcept {
  return static_cast<std::byte*>(job_.packed) + (begin - job_.begin);
}

bool Segments::may_issue() const noexcept {
  if (next_ == job_.end || issued_ - ended_ == segment_count_) return false;
  // Whole segments only, but for the last one.
  return allowed_ >= std::min(job_.end, next_ + static_cast<Offset>(segment_bytes_));
}

Result Segments::issue() noexcept {
  Segment& next = segment(issued_);
  next.begin = next_;
  next.end = std::min(job_.end, next_ + static_cast<Offset>(segment_bytes_));
  if (!packs()) {
    pack::host::copy_bytes(next.memory.data(), packed_at(next.begin), static_cast<std::size_t>(next.end - next.begin));
  }
  pack::GpuEngine* const engine = pack::gpu_engine();
  if (engine == nullptr) return Result::device_failed;
  pack::Job job = job_;
  job.begin = next.begin;
  job.end = next.end;
  job.packed = next.memory.data();
  next.ticket = engine->submit({&job, 1}, device_, reach_of(job.direction, MemoryKind::pinned));
  ++issued_;
  next_ = next.end;
  return next.ticket.is_under_way() ? Result::ok : result_of(next.ticket.status);
}

Result Segments::end_oldest() noexcept {
  Segment& done = oldest();
  ++ended_;
  if (const Result result = result_of(done.ticket.status); result != Result::ok) return result;
  if (packs()) {
    pack::host::copy_bytes(packed_at(done.begin), done.memory.data(), static_cast<std::size_t>(done.end - done.begin));
  }
  moved_ = done.end;
  return Result::ok;
}

// Kernels are issued before the CPU copies, so that the GPU has work meanwhile.
Result Segments::advance() noexcept {
  Result result = Result::ok;
  const bool is_first_look = issued_ == 0;
  while (packs() && result == Result::ok && may_issue()) result = issue();
  if (result == Result::ok && issued_ != ended_ && !is_first_look) {
    pack::Ticket& ticket = oldest().ticket;
    if (ticket.is_under_way()) pack::gpu_engine()->poll(ticket);
    if (!ticket.is_under_way()) result = end_oldest();
  }
  if (!packs() && result == Result::ok && may_issue()) result = issue();
  if (result != Result::ok) return close(result);
  return moved_ != job_.end ? Result::under_way : close(Result::ok);
}

Result Segments::wait() noexcept {
  for (;;) {
    // No other segment of the movement is before the first one. If the first is waited for and not polled, its time
    // tells the engine how busy the GPU is.
    if (!may_issue() && issued_ != 0 && ended_ == 0) wait_for_oldest();
    const Result result = advance();
    if (result != Result::under_way) return result;
    if (may_issue()) continue;
    if (issued_ == ended_) return Result::under_way;
    if (ended_ != 0) wait_for_oldest();
  }
}

void Segments::wait_for_oldest() noexcept {
  if (pack::Ticket& ticket = oldest().ticket; ticket.is_under_way()) {
    static_cast<void>(pack::gpu_engine()->wait(ticket));
  }
}

Result Segments::close(Result result) noexcept {
  for (; ended_ != issued_; ++ended_) wait_for_oldest();
  for (Segment& each : segments_) each.memory = {};
  segment_count_ = 0;
  return result;
}

}  // namespace gapless::transfer
