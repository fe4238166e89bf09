// What pipelined and gather-write have in common: the receiver's staging segments and credits.
//
// The receiver lends the sender a window of staging segments. The sender writes segment s to place s % window. The
// receiver counts the immediates of each segment, unpacks the segment when it is complete, in whatever order segments
// arrive, and gives its place back for segment s + window.
#pragma once

#include "transfer/rdma/scheme.hpp"

namespace gapless::transfer::rdma::segments {

/// Receiver: staging segments for the window, at least one.
Result lend(Message& message) noexcept;
/// Receiver: unpacks complete segments.
Result take(Message& message) noexcept;

/// Sender: takes the place of segment next_. False while the place is not free.
bool open(Message& message) noexcept;
/// Where a segment lies at the receiver.
fabric::RemoteAddress remote_of(const Message& message, std::uint32_t segment) noexcept;
/// Sender: packs segment next_ and lists its one write. False: no staging segment is free, or the message has
/// failed. Throws std::bad_alloc.
bool list_packed(Message& message);
/// Sender: lists the writes that gather segment next_ from the program's memory. False: the message has failed. Throws
/// std::bad_alloc.
bool list_gathered(Message& message);
/// Sender: goes on with segments, packed or gathered, as far as places and queue allow.
Result send(Message& message, bool is_packed) noexcept;

}  // namespace gapless::transfer::rdma::segments
