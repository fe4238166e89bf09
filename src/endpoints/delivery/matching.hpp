// Which message goes to which receive: MPI's rules (MPI 5.0, 3.5) for the queues of one endpoint.
//
// Receives that name source and tag stand in buckets, those with a wildcard in a list of their own; the order of
// posting decides between the two. Messages that nobody waits for yet stand in buckets and in the order of their
// arrival. So the depth of a queue costs only those that really have to be looked at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

struct Operation;

/// Messages of the program and those of collectives never match each other.
enum class Context : std::uint8_t { messages, collective };

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
  std::unique_ptr<std::byte[]> data{};    ///< copied bytes; null where there are none or they are elsewhere
  Operation* sender = nullptr;            ///< waits in this process, its buffer holds the bytes
  MPI_Message remote = MPI_MESSAGE_NULL;  ///< in the library

  static Message* of_arrival(Link* link) noexcept {
    return reinterpret_cast<Message*>(reinterpret_cast<char*>(link) - offset_of_arrival());
  }

 private:
  static std::size_t offset_of_arrival() noexcept;
};

class Matching {
 public:
  /// Of everything here.
  std::mutex mutex;

  /// The first posted receive that accepts the message, taken out; null if none does.
  Posted* take_posted(const Envelope& message) noexcept;
  void post(Posted& receive) noexcept;
  /// False if it was not there (any more).
  bool cancel(Posted& receive) noexcept;

  /// The first message that the receive accepts; null if none has come.
  Message* look(const Envelope& receive) noexcept;
  void take_out(Message& message) noexcept;
  void add(Message& message) noexcept;
  /// Any message; null if there is none.
  Message* any() noexcept;

 private:
  static constexpr std::size_t bucket_count = 128;
  static std::size_t bucket_of(const Envelope& envelope) noexcept {
    const auto mixed =
        static_cast<std::uint32_t>(envelope.source) * 0x9e3779b1u + static_cast<std::uint32_t>(envelope.tag);
    return (mixed * 0x85ebca6bu) >> 25;
  }

  std::uint64_t next_turn_ = 0;
  std::array<Link, bucket_count> posted_;
  Link posted_with_wildcard_;
  std::array<Link, bucket_count> unexpected_;
  Link by_arrival_;
};

}  // namespace gapless::mpi::endpoints
