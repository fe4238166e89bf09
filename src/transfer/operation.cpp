#include "transfer/operation.hpp"

#include <algorithm>
#include <array>

#include "transfer/choose.hpp"
#include "transfer/statistics.hpp"

namespace gapless::transfer {

Operation::Operation(const Buffer& buffer, Side side) noexcept
    : scheme_(buffer.size() == 0 ? Scheme::native : choose(buffer, side)), side_(side) {
  movement_.buffer = buffer;
  movement_.direction = side == Side::sender ? pack::Direction::pack : pack::Direction::unpack;
}

Operation::~Operation() {
  if (is_under_way_) static_cast<void>(schemes::of(scheme_).wait(movement_));
}

Result Operation::start() noexcept {
  packed_ = schemes::of(scheme_).packed_memory(movement_.buffer);
  if (!packed_) {
    return scheme_ != Scheme::packed && device::runtime() == nullptr ? Result::device_failed : Result::out_of_memory;
  }
  movement_.packed = packed_.data();
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
  const Result result = schemes::of(scheme_).start(movement_);
  is_under_way_ = result == Result::under_way;
  return result;
}

Result Operation::advance() noexcept {
  if (!is_under_way_) return Result::ok;
  const Result result = schemes::of(scheme_).advance(movement_);
  is_under_way_ = result == Result::under_way;
  return result;
}

Result Operation::wait(Result result) noexcept {
  if (result != Result::under_way) return result;
  is_under_way_ = false;
  return schemes::of(scheme_).wait(movement_);
}

void finish_together(std::span<Arrival> arrivals) noexcept {
  std::array<schemes::Pending, 32> pending;
  for (std::size_t begin = 0; begin < arrivals.size(); begin += pending.size()) {
    const auto some = arrivals.subspan(begin, std::min(pending.size(), arrivals.size() - begin));
    for (std::size_t i = 0; i < some.size(); ++i) {
      Operation& operation = *some[i].operation;
      record(operation.scheme_, some[i].received);
      operation.movement_.end = static_cast<layout::Offset>(some[i].received);
      pending[i] = {operation.scheme_, &operation.movement_, some[i].received == 0 ? Result::ok : Result::under_way};
    }
    schemes::run_together(std::span(pending).first(some.size()));
    for (std::size_t i = 0; i < some.size(); ++i) some[i].result = pending[i].result;
  }
}

}  // namespace gapless::transfer
