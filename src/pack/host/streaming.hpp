// Streaming stores: stores that go past the caches.
//
// An ordinary store first gets its line into the caches. Where a message is unpacked that no cache can keep, that line
// comes from memory only to be written, and goes back there: three transfers for what streaming stores do in one. Lines
// that are written in part gain nothing.
#pragma once

#include <atomic>

#include "pack/host/nest.hpp"
#include "pack/job.hpp"

namespace gapless::pack::host {

/// Data from so many bytes on is written by streaming stores. In third-level caches of 32 MiB (AMD Zen 3) and 300 MiB
/// (Xeon) that are shared with others, 8 MiB are better written by ordinary ones, 16 MiB where they are read next, and
/// 32 MiB take half the time by streaming stores.
inline constexpr Offset streamed_from_bytes = Offset{32} << 20;

/// The bound in use; tests lower it.
[[gnu::visibility("hidden")]] extern std::atomic<Offset> streamed_from;

/// Does the job unpack a long part of `much` or more? A part counts as its message: the parts before and behind it need
/// the caches as well. But a message that is much shorter than what it is received into comes in few and short parts.
inline bool unpacks_much(const Job& job, Offset much) noexcept {
  constexpr Offset parts = 128;
  return job.direction == Direction::unpack && job.layout->size * job.outer.count >= much &&
         (job.end - job.begin) * parts >= much;
}

/// Does the nest write enough whole lines, with `destination` where its first byte goes?
inline bool writes_whole_lines(const Nest& nest, const char* destination) noexcept {
  constexpr Offset line = 64;
  constexpr Offset long_enough = 8 * line;  // that the parts of lines at both ends do not count
  if (nest.length >= long_enough) return true;
  Offset all = nest.length | reinterpret_cast<std::intptr_t>(destination);
  for (int i = 0; i < nest.depth; ++i) all |= nest.loops[i].destination_stride;
  return all % line == 0;
}

}  // namespace gapless::pack::host
