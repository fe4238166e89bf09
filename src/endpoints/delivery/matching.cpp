#include "endpoints/delivery/matching.hpp"

#include <algorithm>
#include <exception>
#include <new>

namespace gapless::mpi::endpoints {

std::size_t Message::offset_of_arrival() noexcept {
  static const Message one;
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&one.by_arrival) - reinterpret_cast<const char*>(&one));
}

namespace {

constexpr std::size_t long_room = 8192;

void free_all(Link& list) noexcept {
  while (list.is_linked()) {
    auto* message = static_cast<Message*>(list.next);
    message->remove();
    message->~Message();
    ::operator delete(message);
  }
}

}  // namespace

MessagePool::~MessagePool() {
  free_all(short_);
  free_all(long_);
}

Message* MessagePool::take(MPI_Count bytes) noexcept {
  const bool is_short = bytes <= static_cast<MPI_Count>(short_room);
  Link& list = is_short ? short_ : long_;
  if (list.is_linked()) {
    auto* message = static_cast<Message*>(list.previous);
    message->remove();
    return message;
  }
  const std::size_t room = is_short ? short_room : std::max(long_room, static_cast<std::size_t>(bytes));
  void* const memory = ::operator new(sizeof(Message) + room, std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* message = new (memory) Message;
  message->room = room;
  return message;
}

void MessagePool::give(Message& message) noexcept {
  message.sender = nullptr;
  message.attached = nullptr;
  message.loan = message.unit = -1;
  message.remote = MPI_MESSAGE_NULL;
  message.has_failed = false;
  Link& list = message.room == short_room ? short_ : long_;
  list.append(message);
}

Matching::Buckets::Buckets() : lists_(std::size_t{1} << bits_) {}

template <class Entry>
void Matching::Buckets::grow() noexcept {
  constexpr unsigned most_bits = 16;
  if (bits_ == most_bits) return;
  std::vector<Link> old;
  try {
    old = std::vector<Link>(2 * lists_.size());
  } catch (const std::exception&) {  // no memory: longer lists
    return;
  }
  old.swap(lists_);
  ++bits_;
  // Entries of one envelope come from one list, in their order.
  for (Link& list : old) {
    while (list.is_linked()) {
      auto* entry = static_cast<Entry*>(list.next);
      static_cast<Link*>(entry)->remove();
      of(entry->envelope).append(*entry);
    }
  }
}
template void Matching::Buckets::grow<Posted>() noexcept;
template void Matching::Buckets::grow<Message>() noexcept;

bool Matching::cancel(Posted& receive) noexcept {
  if (!receive.is_linked()) return false;
  if (receive.envelope.has_wildcard()) {
    receive.remove();
  } else {
    posted_.remove(receive);
  }
  return true;
}

Message* Matching::look_at_all(const Envelope& receive) noexcept {
  for (Link* link = by_arrival_.next; link != &by_arrival_; link = link->next) {
    Message* message = Message::of_arrival(link);
    if (receive.accepts(message->envelope)) return message;
  }
  return nullptr;
}

void Matching::take_out(Message& message) noexcept {
  unexpected_.remove(message);
  message.by_arrival.remove();
}

void Matching::add(Message& message) noexcept {
  unexpected_.append(message);
  by_arrival_.append(message.by_arrival);
}

Message* Matching::any() noexcept { return by_arrival_.is_linked() ? Message::of_arrival(by_arrival_.next) : nullptr; }

}  // namespace gapless::mpi::endpoints
