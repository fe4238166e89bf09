// Scatter-read (P-RRS, Wu et al., 2003, 5.2): the sender packs into staging segments of its own and tells the receiver
// of each segment. The receiver's reads scatter the segments into its blocks, and the receiver gives segments back once
// they are read.
#include <algorithm>
#include <new>

#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/segments.hpp"

namespace gapless::transfer::rdma {
namespace {

using State = WindowSlot::State;

Result send(Message& message) noexcept {
  while (message.next_ < message.segment_count() && segments::open(message)) {
    WindowSlot& slot = message.slot_of(message.next_);
    slot.staging = message.channel_.staging().acquire(Side::sender);
    if (slot.staging < 0) break;
    if (!message.pack(message.next_, slot.staging)) return message.result_;
    slot.state = State::moving;
    message.to_notify_ |= 1u << message.next_ % message.reply_.window;
    ++message.next_;
  }
  const bool is_told = message.notify();
  return is_told && message.finished_ == message.segment_count() && message.is_quiet() ? Result::ok : Result::under_way;
}

/// Lists the reads of the staging segment of a place. False: the message has failed.
bool list_reads(Message& message, const WindowSlot& slot) {
  const Memory& memory = message.memory_;
  const PoolInformation& pool = message.offer_.pool;
  fabric::RemoteAddress remote = pool.address + static_cast<std::uint64_t>(slot.staging) * pool.segment_bytes;
  layout::Cursor cursor(*memory.layout, memory.outer, message.begin_of(slot.segment), message.end_of(slot.segment));
  for (layout::Segment run; cursor.next(run);) {
    const auto bytes = static_cast<std::size_t>(run.length);
    if (!message.list_block(fabric::Opcode::read, remote, pool.key, memory.origin + run.offset, bytes)) return false;
    remote += bytes;
  }
  return true;
}

/// Gives the places of segments that have been read back to the sender.
void finish(Message& message) noexcept {
  for (std::uint32_t place = 0; place < message.reply_.window; ++place) {
    WindowSlot& slot = message.slots_[place];
    if (slot.state != State::moving || slot.posts_left > 0) continue;
    ++message.finished_;
    slot.segment += message.reply_.window;
    slot.state = slot.segment < message.segment_count() ? State::idle : State::over;
    message.to_notify_ |= 1u << place;
  }
}

Result receive(Message& message) noexcept try {
  finish(message);
  for (std::uint32_t place = 0; place < message.reply_.window && message.flush(); ++place) {
    WindowSlot& slot = message.slots_[place];
    if (slot.state != State::ready) continue;
    message.list_.clear();
    if (!list_reads(message, slot)) return message.result_;
    message.label(slot.segment);
    slot.state = State::moving;
    message.flush();
  }
  const bool is_told = message.notify();
  return is_told && message.finished_ == message.segment_count() && message.is_quiet() ? Result::ok : Result::under_way;
} catch (const std::bad_alloc&) {
  return Result::failed;
}

class ScatterRead final : public Base {
 public:
  bool applies(const Ends& ends) const noexcept override { return ends.limits.has_immediates; }

  double predict_ns(const Ends& ends, const model::FabricProfile& profile) const noexcept override {
    return model::scatter_read_ns(profile, message_of(ends));
  }

  Result accept(Message& message) const noexcept override {
    const Options& options = message.channel_.options();
    Reply& reply = message.reply_;
    if (message.offer_.pool.segment_bytes == 0 ||
        !message.user_memory_.acquire(message.memory_, message.channel_.registration_cost(),
                                      options.most_sender_regions, fabric::Use::alone)) {
      return Result::refused;
    }
    reply.segment_bytes =
        segment_bytes_for(message.memory_.blocks.bytes, message.offer_.pool.segment_bytes, options.profile);
    reply.window =
        static_cast<std::uint32_t>(std::min<std::size_t>({options.window, most_window, message.segment_count()}));
    for (std::uint32_t place = 0; place < reply.window; ++place) message.slots_[place].segment = place;
    return Result::under_way;
  }

  Result start(Message& message) const noexcept override {
    return message.memory_.region == nullptr ? Result::under_way : Result::failed;
  }

  Result advance(Message& message) const noexcept override {
    return message.side_ == Side::sender ? send(message) : receive(message);
  }
};

const ScatterRead object;

}  // namespace

const Base& scatter_read = object;

}  // namespace gapless::transfer::rdma
