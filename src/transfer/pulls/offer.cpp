#include "transfer/pulls/offer.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/settings.hpp"
#include "device/device.hpp"
#include "model/gpu.hpp"
#include "model/model.hpp"
#include "transfer/blocking.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/headers/speakers.hpp"
#include "transfer/pulls/allocations.hpp"
#include "transfer/report/report.hpp"
#include "transfer/rings/outgoing.hpp"

namespace gapless::transfer::pulls {

using headers::PullWords;
using model::gpu_tuning;
using schemes::DirectOffer;
using schemes::ExportedWay;
using State = PullWords::State;

static_assert(sizeof(ExportedWay) <= sizeof(PullWords::copy));

namespace {

/// How long a sender waits before it copies a message out. A copy that exported memory holds as a whole costs the
/// receiver little. A longer copy goes through a ring, and keeps a thread busy: the sender waits longer.
constexpr std::chrono::microseconds usual_patience{200}, least_long_patience{20'000};

/// Had a default stream nothing to do when asked last? The question takes longer than sending a header, so a program
/// whose streams are idle sends the header before the question.
constinit std::atomic<bool> was_idle{false};
constinit std::atomic<std::uint64_t> copied_out{0};

/// How much longer than its patience a sender waits while the receiver fetches other messages. The receiver's thread
/// that this message is for may wait for this sender.
constexpr int most_patiences = 100;

/// Is the next message to the process of the inbox packed, because that process has let the last messages wait? Never
/// where a scheme is forced.
bool is_next_put_off(headers::Inbox& inbox) noexcept { return !is_any_forced() && inbox.pulls_put_off.is_next(); }

Result await_default_stream(int device) noexcept {
  bool is_idle = false;
  const Result result = wait_for_default_stream(device, is_idle);
  was_idle.store(is_idle, std::memory_order_relaxed);
  return result;
}

/// Is no other way sooner? Between peer GPUs, with no scheme forced and nothing measured, the length alone decides.
bool is_chosen(const Buffer& buffer, model::Pair pair) noexcept {
  const bool may_be_other = is_any_forced() || pair != model::Pair::peer_gpu || model::profile().measured != nullptr;
  if (may_be_other) return goes_direct(buffer, pair);
  return static_cast<std::size_t>(buffer.size()) >= schemes::least_direct_bytes;
}

}  // namespace

PullOffer::~PullOffer() {
  if (words_ == nullptr) return;
  if (is_handed_over_) {
    static_cast<void>(complete_alone());
  } else {
    withdraw();
  }
}

bool PullOffer::secure(const Buffer& buffer, headers::Inbox& inbox, std::size_t awaited_later,
                       headers::Header& header) noexcept {
  if (!may_be_pulled(buffer) || !is_chosen(buffer, model::Pair::peer_gpu)) return false;
  is_put_off_ = is_next_put_off(inbox);
  return !is_put_off_ && secure_now(buffer, inbox, awaited_later, header);
}

bool PullOffer::secure_now(const Buffer& buffer, headers::Inbox& inbox, std::size_t awaited_later,
                           headers::Header& header) noexcept {
  const auto description = describe(*buffer.type->layout);
  if (!description) return false;
  const auto* const first = static_cast<const std::byte*>(buffer.memory) + buffer.type->facts.true_lower_bound;
  auto mapped = mapped_by(inbox, first);
  if (!mapped || !is_chosen(buffer, mapped->pair) || !is_within(buffer, mapped->handle)) return false;
  headers::ExportedPool& pool = headers::own_exported_pool();
  if (!pool.is_there(buffer.location.device) || !headers::accepted_by(inbox, pool.handle())) return false;
  const bool is_awaited_later = static_cast<std::size_t>(buffer.size()) <= awaited_later;
  const bool is_awaited_last = !is_awaited_later && was_idle.load(std::memory_order_relaxed);
  if (!is_awaited_later && !is_awaited_last && await_default_stream(buffer.location.device) != Result::ok) return false;
  std::uint32_t number = 0;
  PullWords* const words = take_words(number);
  if (words == nullptr) return false;
  const PulledWay way{
      {reinterpret_cast<std::uintptr_t>(buffer.memory), buffer.count, buffer.type->extent, *description},
      mapped->handle,
      headers::own_rank(),
      number};
  // Room for a copy is kept from here on: when the copy is needed, other messages may have taken all of the pool, and
  // both processes may wait for their sends.
  if (!room_.keep_room(buffer, inbox) || !header.add(way)) {
    leave_words(words);
    room_.withdraw();
    return false;
  }
  words_ = words;
  is_to_be_awaited_ = is_awaited_later;
  is_to_be_offered_ = is_awaited_last;
  inbox_ = &inbox;
  offered_ = std::move(mapped->offered);
  buffer_ = buffer;
  pair_ = mapped->pair;
  begun_ = Clock::now();
  watch_.begin(begun_);
  words->state.store(is_awaited_last ? State::awaiting : State::offered, std::memory_order_release);
  return true;
}

void PullOffer::offer_now() noexcept {
  if (!std::exchange(is_to_be_offered_, false)) return;
  result_ = await_default_stream(buffer_.location.device);
  if (result_ != Result::ok) return fail(result_);
  words_->state.store(State::offered, std::memory_order_release);
}

/// Ends an offer whose header has no message. The words are never used again, because a receiver may still look at
/// them.
void PullOffer::fail(Result how) noexcept {
  is_over_ = true;
  result_ = how;
  let_go();
  words_->state.store(State::free, std::memory_order_release);
}

void PullOffer::await_in(Batch& batch) noexcept {
  batch.await_default_stream(buffer_.location.device);
  is_to_be_awaited_ = false;
}

Result PullOffer::await() noexcept {
  is_to_be_awaited_ = false;
  return wait_for_default_stream(buffer_.location.device);
}

void PullOffer::withdraw() noexcept {
  is_to_be_offered_ = false;
  words_->state.store(State::free, std::memory_order_release);
  leave_words(words_);
  words_ = nullptr;
  let_go();
}

/// The program may free its memory from now on.
void PullOffer::let_go() noexcept {
  room_.withdraw();
  offered_.reset();
}

double PullOffer::predicted_ns() const noexcept { return predict_in_node_ns(Scheme::direct, buffer_, pair_); }

Result PullOffer::end(Result result) noexcept {
  is_over_ = true;
  result_ = result;
  leave_words(words_);
  let_go();
  return result;
}

/// The offer of the packed message, which lies in exported memory as a whole or will go through a ring. Null where the
/// GPU fails.
DirectOffer* PullOffer::pack_copy(headers::Header& told) noexcept {
  if (!room_.has_room_for_whole() && copy_.secure(buffer_, *inbox_, true, 0, told)) return &copy_;
  return room_.use_room(told) ? &room_ : nullptr;
}

/// Claims the message back from the receiver, and offers the packed message.
void PullOffer::copy_out() noexcept {
  State offered = State::offered;
  if (!words_->state.compare_exchange_strong(offered, State::copying, std::memory_order_acq_rel)) return;
  headers::Header told;
  copied_ = pack_copy(told);
  if (copied_ == nullptr) return fail(Result::device_failed);
  const auto way = told.way<ExportedWay>();
  std::memcpy(words_->copy.data(), &*way, sizeof *way);
  words_->state.store(State::copied, std::memory_order_release);
  copied_->hand_over();
  copied_out.fetch_add(1, std::memory_order_relaxed);
  inbox_->pulls_put_off.begin();
}

/// How long this process has waited for the peer. The wait begins when a call first asks for a message, not when the
/// message is sent: what the program does in between is not the peer's fault. All messages offered by then share the
/// wait, because no call waits for each of them in turn. The wait begins again while the peer fetches any of them: a
/// window of long messages takes longer than the patience for one message.
PullOffer::Clock::duration PullOffer::waited(Clock::time_point now) const noexcept {
  auto since = inbox_->pulls_awaited_since.load(std::memory_order_relaxed);
  if (since < begun_.time_since_epoch().count()) {
    since = now.time_since_epoch().count();
    inbox_->pulls_awaited_since.store(since, std::memory_order_relaxed);
  }
  return now.time_since_epoch() - Clock::duration(since);
}

Result PullOffer::go_on(Clock::duration longest_wait) noexcept {
  if (is_over_) return result_;
  if (copied_ == nullptr) {
    const State state = words_->state.load(std::memory_order_acquire);
    const auto now = Clock::now();
    if (state == State::fetching || state == State::done) {
      inbox_->pulls_awaited_since.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
    if (state == State::done) {
      inbox_->pulls_put_off.end();
      record_moved(buffer_, Side::sender, Scheme::direct);
      return end(Result::ok);
    }
    if (!watch_.is_there(*inbox_, now)) return end(Result::peer_failed);
    if (asked_ == Clock::time_point{}) asked_ = now;
    const bool is_over_due = waited(now) >= longest_wait || now - asked_ >= most_patiences * longest_wait;
    if (state == State::offered && is_over_due) copy_out();
    if (copied_ == nullptr) return is_over_ ? result_ : Result::under_way;
  }
  if (copied_->ring() == nullptr) return end(Result::ok);
  const Result result = rings::poll(*copied_->ring());
  return result == Result::under_way ? result : end(result);
}

Result PullOffer::poll() noexcept {
  const auto& wanted = settings().pull_patience_us;
  const auto patience = wanted ? std::chrono::microseconds(*wanted) : usual_patience;
  const bool is_long = buffer_.size() > gpu_tuning.longest_exported_whole;
  return go_on(is_long ? std::max(patience, least_long_patience) : patience);
}

Result PullOffer::wait() noexcept {
  for (;;) {
    if (const Result result = poll(); result != Result::under_way) return result;
    ::sched_yield();
  }
}

Result PullOffer::complete_alone() noexcept {
  for (;;) {
    if (const Result result = go_on(Clock::duration::zero()); result != Result::under_way) return result;
    if (copied_ != nullptr) return end(rings::complete_alone(*copied_->ring()));
    ::sched_yield();
  }
}

}  // namespace gapless::transfer::pulls

std::uint64_t gapless_pulls_copied_out() {
  return gapless::transfer::pulls::copied_out.load(std::memory_order_relaxed);
}
