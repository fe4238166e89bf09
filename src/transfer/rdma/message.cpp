#include "transfer/rdma/message.hpp"

#include <algorithm>
#include <utility>

#include "transfer/blocking.hpp"
#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/scheme.hpp"

namespace gapless::transfer::rdma {

using State = WindowSlot::State;

Message::Message(Channel& channel, std::uint32_t number)
    : channel_(channel), number_(number), user_memory_(channel.registrations()) {}

void Message::open(int peer, const Memory& memory, Side side) noexcept {
  peer_ = peer;
  side_ = side;
  memory_ = memory;
  offer_ = {memory.blocks, number_, schemes_of(memory, side), channel_.information_for(number_)};
  reply_ = {};
  result_ = memory.blocks.bytes == 0 ? Result::ok : Result::under_way;
  is_started_ = has_mail_ = is_lost_ = false;
  list_.clear();
  slots_.fill({});
  next_ = finished_ = outstanding_ = to_notify_ = 0;
  since_sign_ = 0;
  is_told_ = is_touching_ = is_peer_lost_ = false;
  moves_seen_ = channel_.moves(peer);
  moved_at_ = {};
}

std::size_t Message::close() noexcept {
  const bool is_right = result_ == Result::ok && is_quiet();
  if (is_right) {
    user_memory_.release();
  } else {
    user_memory_.revoke();
  }
  list_.trim();
  pairs_.reset();
  held_.reset();
  memory_.layout.reset();
  peer_layout_.reset();
  if (side_ == Side::receiver && scheme() == Scheme::scatter_read) return 0;  // the places have the sender's segments
  if (is_right || (has_segments_alone() && is_quiet())) {
    release_staging();
    return 0;
  }
  return static_cast<std::size_t>(
      std::ranges::count_if(slots_, [](const WindowSlot& slot) { return slot.staging >= 0; }));
}

std::size_t Message::release_staging() noexcept {
  std::size_t released = 0;
  for (WindowSlot& slot : slots_) {
    if (slot.staging < 0) continue;
    channel_.staging().release(slot.staging);
    slot.staging = -1;
    ++released;
  }
  return released;
}

std::size_t Message::posted_after_end() noexcept {
  --outstanding_;
  return has_segments_alone() && is_quiet() ? release_staging() : 0;
}

Result Message::start(const Reply& reply, const layout::LayoutPointer& peer_layout, layout::Mode peer_outer) noexcept {
  if (result_ != Result::under_way) return result_;
  if (reply.window == 0 || reply.window > most_window || reply.segment_bytes == 0 ||
      reply.region_count > most_user_regions || static_cast<std::size_t>(reply.scheme) >= scheme_count ||
      reply.segment_bytes > channel_.staging().segment_bytes()) {
    return result_ = Result::failed;
  }
  reply_ = reply;
  peer_layout_ = peer_layout;
  peer_outer_ = peer_outer;
  is_started_ = true;
  result_ = of(scheme()).start(*this);
  return result_ == Result::under_way ? advance() : result_;
}

void Message::lose(const Reply& reply) noexcept {
  reply_ = reply;
  reply_.window = 0;  // there is no place to give back
  is_started_ = is_lost_ = true;
  static_cast<void>(advance());
}

/// Under way while the queue is full: a receiver that is not told would wait until the stall limit.
Result Message::tell_of_loss() noexcept {
  return channel_.notify(*this, Immediate::lost(peer_number())) ? Result::failed : Result::under_way;
}

void Message::tell_of_failure() noexcept {
  const bool is_known = side_ == Side::receiver || (is_started_ && !is_lost_);
  if (is_known && result_ == Result::failed) channel_.notify(*this, Immediate::lost(peer_number()));
}

Result Message::advance() noexcept {
  if (result_ != Result::under_way || (side_ == Side::sender && !is_started_)) return result_;
  const Result result = is_lost_ ? tell_of_loss() : of(scheme()).advance(*this);
  if (result_ == Result::under_way) result_ = result;
  if (result_ == Result::under_way) look_at_clock();
  return result_;
}

bool Message::has_moved() noexcept {
  const std::uint32_t moves = channel_.moves(peer_);
  return std::exchange(moves_seen_, moves) != moves;
}

/// No fabric reports a dead peer to a message that waits for that peer with no operation of its own under way.
void Message::look_at_clock() noexcept {
  const auto limit = channel_.options().stall_limit, touch_after = channel_.options().touch_after,
             own_pause = channel_.options().own_pause;
  if (limit.count() == 0 && touch_after.count() == 0) return;
  const auto now = std::chrono::steady_clock::now();
  const auto since_look = now - std::exchange(looked_at_, now);
  if (has_moved() || moved_at_ == std::chrono::steady_clock::time_point{}) {
    moved_at_ = touched_at_ = now;
    untaken_ = 0;
  } else if (since_look > own_pause) {
    moved_at_ += since_look;
    touched_at_ += since_look;
  } else if (limit.count() != 0 && now - moved_at_ > limit) {
    result_ = Result::timed_out;
  } else if (is_peer_lost_ && now - moved_at_ > touch_after) {
    result_ = Result::peer_failed;
  } else if (touch_after.count() != 0 && !is_touching_ && now - touched_at_ > touch_after) {
    touched_at_ = now;
    channel_.touch(*this);
  }
}

void Message::posted(std::uint32_t tag, fabric::Status status) noexcept {
  --outstanding_;
  if (status != fabric::Status::ok) {
    fail(status == fabric::Status::peer_failed ? Result::peer_failed : Result::failed);
    return;
  }
  channel_.note_move(peer_);
  if (tag >= slots_.size()) return;
  WindowSlot& slot = slots_[tag];
  if (--slot.posts_left > 0) return;
  if (!has_segments_alone() || slot.staging < 0) return;
  channel_.staging().release(slot.staging);
  slot.staging = -1;
}

void Message::arrived(Immediate immediate) noexcept {
  channel_.note_move(peer_);
  if (immediate == Immediate::lost(number_)) return fail(Result::failed);
  if (side_ == Side::sender && !is_started_) {
    has_mail_ = true;
    return;
  }
  if (side_ == Side::sender) {  // the receiver has given a place back
    if (immediate.segment >= reply_.window) return fail(Result::failed);
    WindowSlot& slot = slots_[immediate.segment];
    slot.state = State::idle;
    ++finished_;
    if (scheme() != Scheme::scatter_read || slot.staging < 0) return;
    channel_.staging().release(slot.staging);
    slot.staging = -1;
    return;
  }
  if (scheme() == Scheme::multi_write && immediate == Immediate::more_bytes(number_)) return;
  for (std::uint32_t place = 0; place < reply_.window; ++place) {
    WindowSlot& slot = slots_[place];
    if (slot.state != State::idle || slot.segment % Immediate::segment_modulus != immediate.segment) continue;
    if (scheme() == Scheme::scatter_read) {
      slot.staging = static_cast<int>(immediate.number);
      slot.state = State::ready;
    } else if (++slot.arrived == immediate.number) {
      slot.state = State::ready;
    }
    return;
  }
  fail(Result::failed);
}

std::uint32_t Message::segment_count() const noexcept {
  return static_cast<std::uint32_t>((memory_.blocks.bytes + reply_.segment_bytes - 1) / reply_.segment_bytes);
}

layout::Offset Message::begin_of(std::uint32_t segment) const noexcept {
  return static_cast<layout::Offset>(segment * reply_.segment_bytes);
}

layout::Offset Message::end_of(std::uint32_t segment) const noexcept {
  return static_cast<layout::Offset>(
      std::min((segment + std::uint64_t{1}) * reply_.segment_bytes, memory_.blocks.bytes));
}

bool Message::pack(std::uint32_t segment, int staging) noexcept {
  return copy(segment, staging, pack::Direction::pack);
}

bool Message::unpack(std::uint32_t segment, int staging) noexcept {
  return copy(segment, staging, pack::Direction::unpack);
}

/// The walk through a deep layout needs memory.
bool Message::copy(std::uint32_t segment, int staging, pack::Direction direction) noexcept {
  const pack::Job job{memory_.layout.get(),
                      memory_.outer,
                      begin_of(segment),
                      end_of(segment),
                      direction,
                      memory_.origin,
                      channel_.staging().memory(staging)};
  if (run_on_host(job) != transfer::Result::ok) {
    fail(Result::failed);
    return false;
  }
  channel_.count_copy(static_cast<std::uint64_t>(job.end - job.begin));
  return true;
}

bool Message::notify() noexcept {
  for (std::uint32_t place = 0; to_notify_ != 0 && place < reply_.window; ++place) {
    if ((to_notify_ >> place & 1) == 0) continue;
    const WindowSlot& slot = slots_[place];
    const Immediate immediate = side_ == Side::receiver
                                    ? Immediate{peer_number(), place, 0}
                                    : Immediate{peer_number(), slot.segment, static_cast<std::uint32_t>(slot.staging)};
    if (!channel_.notify(*this, immediate)) return false;
    to_notify_ &= ~(1u << place);
  }
  return true;
}

bool Message::flush() noexcept {
  const Result result = channel_.post(*this, list_);
  if (result != Result::ok && result != Result::under_way) fail(result);
  return result == Result::ok;
}

bool Message::list_block(fabric::Opcode opcode, fabric::RemoteAddress remote, std::uint64_t key, std::byte* block,
                         std::size_t bytes) {
  const fabric::Region* const region = user_memory_.find(block, bytes);
  if (region == nullptr) {
    fail(Result::failed);
    return false;
  }
  list_.add(opcode, remote, key, {block, bytes, region}, channel_.limits());
  return true;
}

void Message::label(std::uint32_t segment) noexcept {
  const fabric::Limits& limits = channel_.limits();
  const std::uint32_t place = segment % reply_.window;
  const auto posts = static_cast<std::uint32_t>(list_.size());
  const std::uint32_t number = limits.is_ordered ? 1 : posts;
  slots_[place].posts_left = posts;
  for (std::uint32_t i = 0; i < posts; ++i) {
    list_[i].context = context(place);
    if (list_[i].opcode == fabric::Opcode::read || (limits.is_ordered && i + 1 < posts)) continue;
    if (number > Immediate::most_counted) return fail(Result::failed);
    list_[i].has_immediate = true;
    list_[i].immediate = Immediate{peer_number(), segment, number}.encoded();
  }
}

}  // namespace gapless::transfer::rdma
