#include "transfer/rdma/segments.hpp"

#include <algorithm>
#include <new>

#include "transfer/rdma/channel.hpp"

namespace gapless::transfer::rdma::segments {

using State = WindowSlot::State;

Result lend(Message& message) noexcept {
  Staging& staging = message.channel_.staging();
  Reply& reply = message.reply_;
  reply.segment_bytes =
      segment_bytes_for(message.memory_.blocks.bytes, staging.segment_bytes(), message.channel_.options().profile);
  const std::size_t wanted =
      std::min<std::size_t>({message.channel_.options().window, most_window, message.segment_count()});
  for (reply.window = 0; reply.window < wanted; ++reply.window) {
    const int segment = staging.acquire(Side::receiver);
    if (segment < 0) break;
    message.slots_[reply.window].staging = segment;
    message.slots_[reply.window].segment = reply.window;
    reply.segments[reply.window] = static_cast<std::uint16_t>(segment);
  }
  return reply.window > 0 ? Result::under_way : Result::refused;
}

Result take(Message& message) noexcept {
  const auto slots = std::span(message.slots_).first(message.reply_.window);
  const bool may_unpack =
      message.channel_.options().segment_unpack ||
      std::none_of(slots.begin(), slots.end(), [](const WindowSlot& slot) { return slot.state == State::idle; });
  for (std::uint32_t place = 0; place < slots.size() && may_unpack; ++place) {
    WindowSlot& slot = slots[place];
    if (slot.state != State::ready) continue;
    if (!message.unpack(slot.segment, slot.staging)) return message.result_;
    message.channel_.note_move(message.peer_);
    ++message.finished_;
    slot.arrived = 0;
    slot.segment += message.reply_.window;
    const bool is_needed = slot.segment < message.segment_count();
    slot.state = is_needed ? State::idle : State::over;
    if (is_needed) message.to_notify_ |= 1u << place;
  }
  const bool is_told = message.notify();
  return is_told && message.finished_ == message.segment_count() && message.is_quiet() ? Result::ok : Result::under_way;
}

bool open(Message& message) noexcept {
  WindowSlot& slot = message.slot_of(message.next_);
  if (slot.state != State::idle || slot.posts_left > 0) return false;
  slot.segment = message.next_;
  return true;
}

fabric::RemoteAddress remote_of(const Message& message, std::uint32_t segment) noexcept {
  const Reply& reply = message.reply_;
  return reply.pool.address + reply.segments[segment % reply.window] * reply.pool.segment_bytes;
}

bool list_packed(Message& message) {
  WindowSlot& slot = message.slot_of(message.next_);
  Staging& staging = message.channel_.staging();
  slot.staging = staging.acquire(Side::sender);
  if (slot.staging < 0 || !message.pack(message.next_, slot.staging)) return false;
  const auto bytes = static_cast<std::size_t>(message.end_of(message.next_) - message.begin_of(message.next_));
  message.list_.add(fabric::Opcode::write, remote_of(message, message.next_), message.reply_.pool.key,
                    {staging.memory(slot.staging), bytes, &staging.region()}, message.channel_.limits());
  return true;
}

bool list_gathered(Message& message) {
  const Memory& memory = message.memory_;
  fabric::RemoteAddress remote = remote_of(message, message.next_);
  layout::Cursor cursor(*memory.layout, memory.outer, message.begin_of(message.next_), message.end_of(message.next_));
  for (layout::Segment run; cursor.next(run);) {
    const auto bytes = static_cast<std::size_t>(run.length);
    if (!message.list_block(fabric::Opcode::write, remote, message.reply_.pool.key, memory.origin + run.offset, bytes))
      return false;
    remote += bytes;
  }
  return true;
}

Result send(Message& message, bool is_packed) noexcept try {
  while (message.flush() && message.next_ < message.segment_count() && open(message)) {
    message.list_.clear();
    if (!is_packed) {
      if (!list_gathered(message)) return message.result_;
    } else if (!list_packed(message)) {
      break;
    }
    message.slot_of(message.next_).state = State::moving;
    message.label(message.next_);
    ++message.next_;
  }
  const bool is_over = message.next_ == message.segment_count() && message.list_.is_posted() && message.is_quiet();
  return is_over ? Result::ok : Result::under_way;
} catch (const std::bad_alloc&) {
  return Result::failed;
}

}  // namespace gapless::transfer::rdma::segments
