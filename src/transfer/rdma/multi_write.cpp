// Multi-write (Multi-W, Wu et al., 2003, 5.3): writes go straight from the sender's blocks into the receiver's blocks,
// without a copy. The sender knows the receiver's layout.
//
// Where blocks of the sender meet one longer block of the receiver, one write gathers them. A sender whose memory
// cannot be registered packs into staging segments and writes from there.
#include <new>

#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/segments.hpp"

namespace gapless::transfer::rdma {
namespace {

using State = WindowSlot::State;

constexpr std::size_t most_posts = 512;  // of one list: the first list leaves early

/// The receiver's region that holds an address, or null.
const UserRegion* find(const Reply& reply, std::uint64_t address, std::uint64_t bytes) noexcept {
  for (std::uint32_t i = 0; i < reply.region_count; ++i) {
    const UserRegion& region = reply.regions[i];
    const std::uint64_t offset = address - region.memory;
    if (offset <= region.bytes && region.bytes - offset >= bytes) return &region;
  }
  return nullptr;
}

struct Target {
  fabric::RemoteAddress remote;
  std::uint64_t key;
};

/// Finds the remote address of a run of the receiver. A run that no region holds ends the message.
bool locate(Message& message, layout::Offset offset, layout::Offset length, Target& target) noexcept {
  const std::uint64_t address = message.reply_.memory + static_cast<std::uint64_t>(offset);
  const UserRegion* region = find(message.reply_, address, static_cast<std::uint64_t>(length));
  if (region == nullptr) {
    message.fail(Result::failed);
    return false;
  }
  target = {region->address + (address - region->memory), region->key};
  return true;
}

/// Makes the next list, of the program's blocks. True: the list is the last, or the message has failed.
bool list_blocks(Message& message) {
  const fabric::Limits& limits = message.channel_.limits();
  for (;;) {
    layout::PairedRun run;
    if (message.held_) {
      run = *message.held_;
      message.held_.reset();
    } else if (!message.pairs_->next(run)) {
      return true;
    }
    Target target;
    if (!locate(message, run.destination, run.length, target)) return true;
    if (message.list_.size() >= most_posts &&
        !message.list_.continues(fabric::Opcode::write, target.remote, target.key, limits)) {
      message.held_ = run;
      return false;
    }
    if (!message.list_block(fabric::Opcode::write, target.remote, target.key, message.memory_.origin + run.source,
                            static_cast<std::size_t>(run.length)))
      return true;
  }
}

/// Packs the next staging segment, and makes the list of its writes. True: the segment is the last, or the message has
/// failed.
bool list_staged(Message& message, const WindowSlot& slot) {
  const Staging& staging = message.channel_.staging();
  if (!message.pack(message.next_, slot.staging)) return true;
  std::byte* from = staging.memory(slot.staging);
  layout::Cursor cursor(*message.peer_layout_, message.peer_outer_, message.begin_of(message.next_),
                        message.end_of(message.next_));
  for (layout::Segment run; cursor.next(run);) {
    Target target;
    if (!locate(message, run.offset, run.length, target)) return true;
    const auto bytes = static_cast<std::size_t>(run.length);
    message.list_.add(fabric::Opcode::write, target.remote, target.key, {from, bytes, &staging.region()},
                      message.channel_.limits());
    from += bytes;
  }
  return ++message.next_ == message.segment_count();
}

/// Gives writes the immediates that show a receiver of a long message that its bytes flow.
void add_signs(Message& message) noexcept {
  for (std::size_t i = 0; i < message.list_.size(); ++i) {
    message.since_sign_ += message.list_.bytes_of(i);
    if (message.since_sign_ < most_operation_bytes) continue;
    message.since_sign_ = 0;
    message.list_[i].has_immediate = true;
    message.list_[i].immediate = Immediate::more_bytes(message.peer_number()).encoded();
  }
}

/// Makes the next list. False: there is no staging segment, the staging segment of the last list is still in use, or
/// the message has failed. (A failed message must not tell the receiver that all bytes are there.)
bool list_next(Message& message) {
  WindowSlot& slot = message.slots_[0];
  bool is_last = false;
  if (message.user_memory_.is_held()) {
    message.list_.clear();
    is_last = list_blocks(message);
  } else {
    if (slot.posts_left > 0) return false;
    if (slot.staging < 0) slot.staging = message.channel_.staging().acquire(Side::sender);
    if (slot.staging < 0) return false;
    message.list_.clear();
    is_last = list_staged(message, slot);
  }
  if (message.result_ != Result::under_way) return false;
  slot.posts_left += static_cast<std::uint32_t>(message.list_.size());
  for (std::size_t i = 0; i < message.list_.size(); ++i) message.list_[i].context = message.context(0);
  if (message.memory_.blocks.bytes > most_operation_bytes) add_signs(message);
  if (!is_last) return true;
  slot.state = State::over;
  if (!message.channel_.limits().is_ordered || message.list_.size() == 0) return true;
  fabric::Post& last = message.list_[message.list_.size() - 1];
  last.has_immediate = true;
  last.immediate = Immediate{message.peer_number(), 0, 1}.encoded();
  message.is_told_ = true;
  return true;
}

Result send(Message& message) noexcept try {
  while (message.flush() && message.slots_[0].state != State::over && list_next(message)) {
  }
  if (message.result_ != Result::under_way) return message.result_;
  const bool is_posted = message.slots_[0].state == State::over && message.list_.is_posted();
  if (!is_posted || !message.is_quiet()) return Result::under_way;
  if (message.is_told_) return Result::ok;
  // Every write has reached the receiver's memory, so the immediate cannot overtake one.
  message.is_told_ = message.channel_.notify(message, {message.peer_number(), 0, 1});
  return Result::under_way;
} catch (const std::bad_alloc&) {
  return Result::failed;
}

class MultiWrite final : public Base {
 public:
  bool applies(const Ends& ends) const noexcept override { return ends.limits.has_immediates; }

  double predict_ns(const Ends& ends, const model::FabricProfile& profile) const noexcept override {
    return model::multi_write_ns(profile, message_of(ends));
  }

  Result accept(Message& message) const noexcept override {
    Reply& reply = message.reply_;
    if (!message.user_memory_.acquire(message.memory_, message.channel_.registration_cost(), most_user_regions,
                                      fabric::Use::alone)) {
      return Result::refused;
    }
    for (const fabric::Region* region : message.user_memory_.regions()) {
      reply.regions[reply.region_count++] = {reinterpret_cast<std::uintptr_t>(region->memory), region->bytes,
                                             region->address, region->key};
    }
    reply.memory = reinterpret_cast<std::uintptr_t>(message.memory_.origin);
    reply.segment_bytes = segment_bytes_for(message.memory_.blocks.bytes, message.channel_.staging().segment_bytes(),
                                            message.channel_.options().profile);
    reply.window = 1;
    return Result::under_way;
  }

  Result start(Message& message) const noexcept override {
    if (message.peer_layout_ == nullptr) return Result::failed;
    const Channel& channel = message.channel_;
    const Memory& memory = message.memory_;
    if (message.user_memory_.acquire(memory, channel.registration_cost(), channel.options().most_sender_regions,
                                     fabric::Use::shared)) {
      message.pairs_.emplace(layout::Cursor(*memory.layout, memory.outer, 0, memory.size()),
                             layout::Cursor(*message.peer_layout_, message.peer_outer_, 0, memory.size()));
    }
    return Result::under_way;
  }

  Result advance(Message& message) const noexcept override {
    if (message.side_ == Side::sender) return send(message);
    return message.slots_[0].state == State::ready ? Result::ok : Result::under_way;
  }
};

const MultiWrite object;

}  // namespace

const Base& multi_write = object;

}  // namespace gapless::transfer::rdma
