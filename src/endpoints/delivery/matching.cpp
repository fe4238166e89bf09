#include "endpoints/delivery/matching.hpp"

namespace gapless::mpi::endpoints {
namespace {

Posted* first_in(Link& list, const Envelope& message) noexcept {
  for (Link* link = list.next; link != &list; link = link->next) {
    auto* receive = static_cast<Posted*>(link);
    if (receive->envelope.accepts(message)) return receive;
  }
  return nullptr;
}

}  // namespace

std::size_t Message::offset_of_arrival() noexcept {
  static const Message one;
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&one.by_arrival) - reinterpret_cast<const char*>(&one));
}

Posted* Matching::take_posted(const Envelope& message) noexcept {
  Posted* exact = first_in(posted_[bucket_of(message)], message);
  Posted* wild = first_in(posted_with_wildcard_, message);
  Posted* first = wild == nullptr || (exact != nullptr && exact->turn < wild->turn) ? exact : wild;
  if (first != nullptr) first->remove();
  return first;
}

void Matching::post(Posted& receive) noexcept {
  receive.turn = next_turn_++;
  Link& list = receive.envelope.has_wildcard() ? posted_with_wildcard_ : posted_[bucket_of(receive.envelope)];
  list.append(receive);
}

bool Matching::cancel(Posted& receive) noexcept {
  if (!receive.is_linked()) return false;
  receive.remove();
  return true;
}

Message* Matching::look(const Envelope& receive) noexcept {
  if (!receive.has_wildcard()) {
    Link& bucket = unexpected_[bucket_of(receive)];
    for (Link* link = bucket.next; link != &bucket; link = link->next) {
      auto* message = static_cast<Message*>(link);
      if (receive.accepts(message->envelope)) return message;
    }
    return nullptr;
  }
  for (Link* link = by_arrival_.next; link != &by_arrival_; link = link->next) {
    Message* message = Message::of_arrival(link);
    if (receive.accepts(message->envelope)) return message;
  }
  return nullptr;
}

void Matching::take_out(Message& message) noexcept {
  message.remove();
  message.by_arrival.remove();
}

void Matching::add(Message& message) noexcept {
  unexpected_[bucket_of(message.envelope)].append(message);
  by_arrival_.append(message.by_arrival);
}

Message* Matching::any() noexcept { return by_arrival_.is_linked() ? Message::of_arrival(by_arrival_.next) : nullptr; }

}  // namespace gapless::mpi::endpoints
