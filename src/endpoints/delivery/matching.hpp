// Which message goes to which receive: MPI's rules (MPI 5.0, 3.5) for the queues of one endpoint.
//
// Receives that name source and tag stand in buckets, those with a wildcard in a list of their own; the order of
// posting decides between the two. Messages that nobody waits for yet stand in buckets and in the order of their
// arrival. Buckets grow with the queue, so its depth costs only those that really have to be looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

struct Operation;

/// Messages of the program and those of collectives never match each other. A word, as envelopes are copied in words:
/// one that is written as a byte and read as more takes a processor as long as half a message.
enum class Context : std::int32_t { messages, collective };

struct Envelope {
  int source;  ///< a rank; in a receive also MPI_ANY_SOURCE
  int tag;     ///< in a receive also MPI_ANY_TAG
  Context context;

  bool has_wildcard() const noexcept { return source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG; }
  /// Precondition: `message` has no wildcard.
  bool accepts(const Envelope& message) const noexcept {
    return context == message.context && (source == message.source || source == MPI_ANY_SOURCE) &&
           (tag == message.tag || tag == MPI_ANY_TAG);
  }
};

struct Link {
  Link* previous = this;
  Link* next = this;
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  bool is_linked() const noexcept { return next != this; }
  void remove() noexcept {
    previous->next = next;
    next->previous = previous;
    previous = next = this;
  }
  void append(Link& link) noexcept {
    link.previous = previous;
    link.next = this;
    previous->next = &link;
    previous = &link;
  }
};

/// A receive that waits for its message.
struct Posted : Link {
  Envelope envelope{};
  std::uint64_t turn = 0;
};

/// A message that waits for its receive.
struct Message : Link {
  Link by_arrival;
  Envelope envelope{};
  MPI_Count bytes = 0;
  Operation* sender = nullptr;            ///< waits in this process, its buffer holds the bytes
  const std::byte* attached = nullptr;    ///< where the bytes are in another process, whose sender waits
  int loan = -1;                          ///< of that sender
  int unit = -1;                          ///< the first with the bytes, in the sender's outbox
  MPI_Message remote = MPI_MESSAGE_NULL;  ///< in the library
  bool has_failed = false;                ///< its sender could not read the bytes
  std::size_t room = 0;                   ///< for copied bytes, which lie behind the message

  std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  static Message* of_arrival(Link* link) noexcept {
    return reinterpret_cast<Message*>(reinterpret_cast<char*>(link) - offset_of_arrival());
  }

 private:
  static std::size_t offset_of_arrival() noexcept;
};

/// Messages that are used again, so that one that nobody waits for yet costs no allocation. Locked by its user.
class MessagePool {
 public:
  MessagePool() = default;
  ~MessagePool();
  MessagePool(const MessagePool&) = delete;
  MessagePool& operator=(const MessagePool&) = delete;

  /// With room for so many bytes; null if there is no memory.
  Message* take(MPI_Count bytes) noexcept;
  void give(Message& message) noexcept;

 private:
  static constexpr std::size_t short_room = 64;
  Link short_, long_;
};

class Matching {
 public:
  /// The first posted receive that accepts the message, taken out; null if none does.
  Posted* take_posted(const Envelope& message) noexcept;
  void post(Posted& receive) noexcept;
  /// False if it was not there (any more).
  bool cancel(Posted& receive) noexcept;

  bool has_posted() const noexcept { return posted_.entries() != 0 || posted_with_wildcard_.is_linked(); }

  /// The first message that the receive accepts; null if none has come.
  Message* look(const Envelope& receive) noexcept;
  void take_out(Message& message) noexcept;
  void add(Message& message) noexcept;
  /// Any message; null if there is none.
  Message* any() noexcept;

 private:
  /// As many as there are entries, or half as many, so that few stand in each.
  class Buckets {
   public:
    Buckets();
    Link& of(const Envelope& envelope) noexcept;
    /// One entry more, or less.
    template <class Entry>
    void append(Entry& entry) noexcept;
    void remove(Link& entry) noexcept;
    std::size_t entries() const noexcept { return entries_; }

   private:
    template <class Entry>
    void grow() noexcept;
    unsigned bits_ = 5;
    std::size_t entries_ = 0;
    std::vector<Link> lists_;
  };
  Posted* first_in(Link& list, const Envelope& message) noexcept;
  Message* look_at_all(const Envelope& receive) noexcept;

  std::uint64_t next_turn_ = 0;
  Buckets posted_, unexpected_;
  Link posted_with_wildcard_;
  Link by_arrival_;
};

// What every message does.

inline Link& Matching::Buckets::of(const Envelope& envelope) noexcept {
  const auto mixed =
      static_cast<std::uint32_t>(envelope.source) * 0x9e3779b1u + static_cast<std::uint32_t>(envelope.tag);
  return lists_[(mixed * 0x85ebca6bu) >> (32 - bits_)];
}

template <class Entry>
inline void Matching::Buckets::append(Entry& entry) noexcept {
  if (++entries_ > 2 * lists_.size()) [[unlikely]]
    grow<Entry>();
  of(entry.envelope).append(entry);
}

inline void Matching::Buckets::remove(Link& entry) noexcept {
  entry.remove();
  --entries_;
}

inline Posted* Matching::first_in(Link& list, const Envelope& message) noexcept {
  for (Link* link = list.next; link != &list; link = link->next) {
    auto* receive = static_cast<Posted*>(link);
    if (receive->envelope.accepts(message)) return receive;
  }
  return nullptr;
}

inline Posted* Matching::take_posted(const Envelope& message) noexcept {
  Posted* exact = first_in(posted_.of(message), message);
  Posted* wild = first_in(posted_with_wildcard_, message);
  if (exact != nullptr && (wild == nullptr || exact->turn < wild->turn)) {
    posted_.remove(*exact);
    return exact;
  }
  if (wild != nullptr) wild->remove();
  return wild;
}

inline void Matching::post(Posted& receive) noexcept {
  receive.turn = next_turn_++;
  if (receive.envelope.has_wildcard()) return posted_with_wildcard_.append(receive);
  posted_.append(receive);
}

inline Message* Matching::look(const Envelope& receive) noexcept {
  if (!by_arrival_.is_linked()) return nullptr;
  if (!receive.has_wildcard()) {
    Link& bucket = unexpected_.of(receive);
    for (Link* link = bucket.next; link != &bucket; link = link->next) {
      auto* message = static_cast<Message*>(link);
      if (receive.accepts(message->envelope)) return message;
    }
    return nullptr;
  }
  return look_at_all(receive);
}

}  // namespace gapless::mpi::endpoints
