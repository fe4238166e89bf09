#include "transfer/operation.hpp"

#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "layout/algebra/canonical.hpp"
#include "model/gpu.hpp"
#include "transfer/blocking.hpp"
#include "transfer/buffers/long_buffers.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::transfer {

Operation::Operation(const Buffer& buffer, Side side) noexcept
    : Operation(buffer, side, buffer.size() == 0 ? Scheme::native : choose(buffer, side)) {}

Operation::Operation(const Buffer& buffer, Side side, Scheme scheme) noexcept : scheme_(scheme), side_(side) {
  movement_.buffer = buffer;
  movement_.direction = side == Side::sender ? pack::Direction::pack : pack::Direction::unpack;
}

Operation::~Operation() {
  if (is_under_way_) static_cast<void>(schemes::of(scheme_).wait(movement_));
}

// Without memory of the scheme's kind the message goes through segments.
Result Operation::reserve() noexcept {
  packed_ = schemes::of(scheme_).packed_memory(movement_.buffer);
  if (!packed_ && scheme_ != Scheme::pipelined && schemes::pipelined.applies(movement_.buffer)) {
    scheme_ = Scheme::pipelined;
    packed_ = schemes::pipelined.packed_memory(movement_.buffer);
  }
  movement_.packed = packed_.data();
  if (packed_) return Result::ok;
  return scheme_ != Scheme::packed && device::runtime() == nullptr ? Result::device_failed : Result::out_of_memory;
}

bool Operation::takes_memory_if_worth_it() noexcept {
  constexpr buffer_memory::MemoryPlace host{device::MemoryKind::host, -1, 0};
  const bool is_long = scheme_ == Scheme::packed && packed_size() > buffer_memory::longest_of_thread;
  if (packed_ || !is_long || is_any_forced()) return true;
  if (!long_buffers::is_worth_taking(host, packed_size())) return false;
  static_cast<void>(reserve());
  return true;
}

Result Operation::start() noexcept {
  if (!packed_) {
    if (const Result result = reserve(); result != Result::ok) return result;
  }
  if (side_ == Side::receiver) return Result::ok;
  record(scheme_, packed_size());
  return move(movement_.buffer.size());
}

Result Operation::finish(std::size_t received) noexcept {
  record(scheme_, received);
  return received == 0 ? Result::ok : move(static_cast<layout::Offset>(received));
}

Result Operation::move(layout::Offset end) noexcept {
  movement_.end = end;
  clock_.begin();
  return note(schemes::of(scheme_).start(movement_));
}

/// Notes the movement's state.
Result Operation::note(Result result) noexcept {
  is_under_way_ = result == Result::under_way;
  if (result == Result::ok && report_wanted()) {
    report_moved(movement_.buffer, side_, scheme_, static_cast<std::size_t>(movement_.end), clock_.ns());
  }
  return result;
}

Result Operation::advance() noexcept {
  if (!is_under_way_) return Result::ok;
  return note(schemes::of(scheme_).advance(movement_));
}

Result Operation::wait(Result result) noexcept {
  if (result != Result::under_way) return result;
  return note(schemes::of(scheme_).wait(movement_));
}

void Operation::start_in(Batch& batch) noexcept {
  record(scheme_, packed_size());
  move_in(batch, movement_.buffer.size());
}

void Operation::finish_in(Batch& batch, std::size_t received) noexcept {
  record(scheme_, received);
  if (received != 0) move_in(batch, static_cast<layout::Offset>(received));
}

void Operation::move_in(Batch& batch, layout::Offset end) noexcept {
  if (!joins_batches()) return batch.note(wait(move(end)));
  movement_.end = end;
  report_moved(movement_.buffer, side_, scheme_, static_cast<std::size_t>(end), untimed_ns);
  batch.add(movement_.job(), movement_.buffer.location.device, reach_of(movement_.direction, packed_.kind()));
}

void Batch::add(const pack::Job& job, int device, pack::Reach reach) noexcept {
  const bool joins = (is_empty() || device == device_) && (count_ == 0 || job.direction == jobs_.front().direction);
  if (count_ == most_jobs || !joins) static_cast<void>(run());
  if (count_ == 0) reach_ = reach;
  if (reach != pack::Reach::this_gpu) reach_ = reach;
  jobs_[count_++] = job;
  device_ = device;
}

void Batch::add(const pack::PairJob& job, int device) noexcept {
  if (pair_count_ == most_jobs || (!is_empty() && device != device_)) static_cast<void>(run());
  pairs_[pair_count_++] = job;
  device_ = device;
}

void Batch::await_default_stream(int device) noexcept {
  if (awaited_device_ == device) return;
  if (awaited_device_ >= 0) note(wait_for_default_stream(awaited_device_));
  awaited_device_ = device;
}

namespace {

/// The unpacking as a copy from one layout to another; nothing for a part of a layout, or for an unpacking long enough
/// for a launch of its own.
std::optional<pack::PairJob> as_pair(const pack::Job& job) {
  const layout::Offset size = job.layout->size * job.outer.count;
  const bool is_whole = job.begin == 0 && job.end == size;
  if (job.direction != pack::Direction::unpack || !is_whole || size > model::gpu_tuning.largest_batched_job) return {};
  static const layout::LayoutPointer& byte = *new layout::LayoutPointer(layout::block(0, 1));
  return pack::PairJob{byte.get(), {size, 1}, job.packed, job.layout, job.outer, job.memory};
}

}  // namespace

/// Jobs beside copies between two layouts become copies as well, for one launch.
void Batch::join_jobs() noexcept try {
  std::size_t left = 0;
  for (const pack::Job& job : std::span(jobs_).first(count_)) {
    const auto pair = pair_count_ < pairs_.size() ? as_pair(job) : std::nullopt;
    if (pair) {
      pairs_[pair_count_++] = *pair;
    } else {
      jobs_[left++] = job;
    }
  }
  count_ = left;
} catch (const std::exception&) {
  // Without memory, the jobs have a launch of their own. Some may be in both lists, and are unpacked twice.
}

Result Batch::run() noexcept {
  if (count_ != 0 && pair_count_ != 0) join_jobs();
  if (awaited_device_ >= 0) note(wait_for_default_stream(std::exchange(awaited_device_, -1)));
  if (is_empty()) return result_;
  const auto jobs = std::span(jobs_).first(std::exchange(count_, 0));
  const auto pairs = std::span(pairs_).first(std::exchange(pair_count_, 0));
  pack::GpuEngine* const engine = pack::gpu_engine();
  if (engine == nullptr) {
    note(Result::device_failed);
    return result_;
  }
  pack::Ticket copies;
  if (!pairs.empty()) copies = engine->submit(pairs, device_);
  if (!jobs.empty()) note(result_of(engine->run_and_wait(jobs, device_, reach_)));
  note(result_of(copies.is_under_way() ? engine->wait(copies) : copies.status));
  return result_;
}

}  // namespace gapless::transfer
