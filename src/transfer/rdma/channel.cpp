#include "transfer/rdma/channel.hpp"

#include <algorithm>
#include <new>

#include "transfer/rdma/scheme.hpp"

namespace gapless::transfer::rdma {

using fabric::Completion;
using fabric::Status;

Channel::Channel(fabric::Endpoint& endpoint, const Options& options)
    : endpoint_(endpoint),
      limits_(endpoint.limits()),
      options_(options),
      registrations_(endpoint, options.registrations),
      staging_(endpoint, options.segment_bytes, options.segments, most_messages) {
  limits_.operation_bytes = std::min(limits_.operation_bytes, most_operation_bytes);
}

Channel::~Channel() { endpoint_.stop(); }

Message* Channel::open(int peer, const Memory& memory, Side side) noexcept try {
  const auto peers = static_cast<std::size_t>(peer) + 1;
  if (moves_.size() < peers) moves_.resize(peers);
  constexpr std::uint32_t half = most_messages / 2;
  const std::uint32_t first = side == Side::sender ? 0 : half;
  for (std::uint32_t i = first; i < first + half; ++i) {
    Entry& entry = entries_[i];
    if (entry.is_used || entry.is_abandoned) continue;
    entry.generation = (entry.generation + 1) % generations;
    if (entry.message == nullptr) entry.message = std::make_unique<Message>(*this, 0);
    entry.message->number_ = entry.generation << 8 | i;
    entry.message->open(peer, memory, side);
    entry.is_used = true;
    return entry.message.get();
  }
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

Message* Channel::send(int peer, const Memory& memory) noexcept {
  const bool is_packed_here = memory.region == nullptr;
  if (is_packed_here && staging_.available(Side::sender) == 0 && !is_staging_lent(Side::sender)) return nullptr;
  return open(peer, memory, Side::sender);
}

namespace {

/// Does the receiver lend staging segments?
constexpr bool is_staged(Scheme scheme) noexcept {
  return scheme == Scheme::pipelined || scheme == Scheme::gather_write;
}

}  // namespace

Message* Channel::receive(int peer, const Memory& memory, const Offer& offer, unsigned allowed,
                          std::optional<Scheme> first) noexcept {
  if (offer.blocks.bytes != memory.blocks.bytes) return nullptr;
  Message* message = open(peer, memory, Side::receiver);
  if (message == nullptr) return nullptr;
  message->offer_ = offer;
  allowed &= offer.schemes & schemes_of(memory, Side::receiver);
  const Ends ends{offer.blocks, memory.blocks, limits(),
                  segment_bytes_for(offer.blocks.bytes, staging_.segment_bytes(), options_.profile)};
  for (; allowed != 0 && message->result_ == Result::under_way;) {
    const Scheme scheme = first ? *first : choose(ends, options_.profile, allowed);
    first.reset();
    if ((allowed >> static_cast<unsigned>(scheme) & 1) == 0) break;
    allowed &= ~(1u << static_cast<unsigned>(scheme));
    message->reply_ = {};
    message->reply_.scheme = scheme;
    message->reply_.transfer = message->number_;
    message->reply_.pool = staging_.information();
    if (of(scheme).accept(*message) == Result::refused) {
      // Other messages give staging segments back, and then this scheme is still the best one.
      if (is_staged(scheme) && is_staging_lent(Side::receiver, message)) break;
      continue;
    }
    ++counts_.messages[static_cast<std::size_t>(scheme)];
    return message;
  }
  if (message->result_ == Result::ok) return message;  // the message is empty
  message->result_ = Result::ok;                       // so that end() gives everything back
  end(message);
  return nullptr;
}

/// Do messages of that side hold staging segments that they will give back?
bool Channel::is_staging_lent(Side side, const Message* without) const noexcept {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    const Message* const message = entry.message.get();
    if (!entry.is_used || message == without || message->side_ != side) return false;
    if (side == Side::receiver && !is_staged(message->scheme())) return false;
    const bool is_right = message->result() == Result::under_way || message->result() == Result::ok;
    return is_right && std::ranges::any_of(message->slots_, [](const WindowSlot& slot) { return slot.staging >= 0; });
  });
}

Message* Channel::decline(int peer, const Offer& offer) noexcept {
  Message* message = open(peer, {}, Side::receiver);
  if (message != nullptr) message->offer_ = offer;
  return message;
}

void Channel::end(Message* message) noexcept {
  if (message == nullptr) return;
  Entry& entry = entries_[message->number_ & (most_messages - 1)];
  message->tell_of_failure();
  const bool is_right = message->result() == Result::ok && message->is_quiet();
  counts_.abandoned_segments += message->close();
  entry.is_used = false;
  entry.is_abandoned = !is_right;
}

Message* Channel::find(std::uint32_t number) noexcept {
  Entry& entry = entries_[number & (most_messages - 1)];
  return entry.is_used && entry.message->number_ == number ? entry.message.get() : nullptr;
}

Message* Channel::find_abandoned(std::uint32_t number) noexcept {
  Entry& entry = entries_[number & (most_messages - 1)];
  return entry.is_abandoned && entry.message->number_ == number ? entry.message.get() : nullptr;
}

void Channel::take(const Completion& completion) noexcept {
  if (completion.kind == Completion::Kind::posted) {
    const auto tag = static_cast<std::uint32_t>(completion.context);
    const auto number = static_cast<std::uint32_t>(completion.context >> 32);
    Message* const message = find(number);
    if (tag == Message::touch_tag) {
      if (message != nullptr) message->touched(completion.status);
      return;
    }
    ++counts_.completions;
    if (message != nullptr) {
      message->posted(tag, completion.status);
    } else if (Message* const abandoned = find_abandoned(number)) {
      counts_.abandoned_segments -= abandoned->posted_after_end();
    }
    return;
  }
  const Immediate immediate = Immediate::decoded(completion.immediate);
  Message* message = find(immediate.transfer);
  if (message != nullptr) {
    message->arrived(immediate);
  } else {
    ++counts_.unknown_immediates;
  }
}

void Channel::progress() noexcept {
  std::array<Completion, 32> completions;
  for (int rounds = 0; rounds < 4; ++rounds) {
    const std::size_t count = endpoint_.poll(completions);
    for (std::size_t i = 0; i < count; ++i) take(completions[i]);
    if (count < completions.size()) return;
  }
}

namespace {

Result result_of(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return Result::ok;
    case Status::again:
      return Result::under_way;
    case Status::peer_failed:
      return Result::peer_failed;
    default:
      return Result::failed;
  }
}

}  // namespace

Result Channel::post(Message& message, PostList& list) noexcept {
  while (!list.is_posted()) {
    auto rest = list.rest();
    if (!options_.list_posting) rest = rest.first(1);
    const fabric::Posted posted = endpoint_.post(message.peer_, rest);
    for (const fabric::Post& post : rest.first(posted.count)) {
      for (const fabric::Piece& piece : post.local) counts_.posted_bytes += piece.bytes;
    }
    counts_.posts += posted.count;
    counts_.lists += posted.count > 0 ? 1 : 0;
    message.outstanding_ += static_cast<std::uint32_t>(posted.count);
    if (posted.count > 0) note_move(message.peer_);
    list.take(posted.count);
    if (posted.status != Status::ok) return result_of(posted.status);
  }
  return Result::ok;
}

namespace {

const PoolInformation& pool_of_peer(const Message& message) noexcept {
  return message.side_ == Side::sender ? message.reply_.pool : message.offer_.pool;
}

}  // namespace

void Channel::touch(Message& message) noexcept {
  const fabric::Piece bell{staging_.bell(), Staging::bell_bytes, &staging_.region()};
  fabric::Post post;
  post.remote = pool_of_peer(message).bell;
  post.key = pool_of_peer(message).key;
  post.local = {&bell, 1};
  post.context = message.context(Message::touch_tag);
  const fabric::Posted posted = endpoint_.post(message.peer_, {&post, 1});
  const bool has_room = counts_.posts + counts_.notifications - counts_.completions < limits().outstanding;
  const bool was_there = moves(message.peer_) > 0;
  if (posted.count == 1) {
    message.is_touching_ = true;
    message.untaken_ = 0;
  } else if (posted.status != Status::again || (has_room && was_there && ++message.untaken_ >= options_.most_untaken)) {
    message.touched(Status::peer_failed);
  }
}

bool Channel::notify(Message& message, Immediate immediate) noexcept {
  const PoolInformation& pool = pool_of_peer(message);
  const fabric::Piece bell{staging_.bell(), Staging::bell_bytes, &staging_.region()};
  return post_alone(message, bell, pool.bell, pool.key, immediate);
}

bool Channel::mail(Message& message, std::size_t bytes) noexcept {
  const fabric::Piece piece{mailbox(message), bytes, &staging_.region()};
  return post_alone(message, piece, message.offer_.pool.mail, message.offer_.pool.key, {message.offer_.transfer, 0, 0});
}

bool Channel::post_alone(Message& message, const fabric::Piece& piece, fabric::RemoteAddress remote, std::uint64_t key,
                         Immediate immediate) noexcept {
  fabric::Post post;
  post.has_immediate = true;
  post.immediate = immediate.encoded();
  post.remote = remote;
  post.key = key;
  post.local = {&piece, 1};
  post.context = message.context(Message::notification_tag);
  const fabric::Posted posted = endpoint_.post(message.peer_, {&post, 1});
  if (posted.count == 1) {
    ++message.outstanding_;
    ++counts_.notifications;
    return true;
  }
  if (posted.status != Status::again) message.fail(result_of(posted.status));
  return false;
}

}  // namespace gapless::transfer::rdma
