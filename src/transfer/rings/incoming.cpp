#include "transfer/rings/incoming.hpp"

#include <sched.h>

#include <algorithm>

#include "fabric/registry.hpp"
#include "transfer/blocking.hpp"
#include "transfer/rings/outgoing.hpp"

namespace gapless::transfer::rings {
namespace {

using headers::RingWords;

/// Copies of sections, by the same members as Sections has. A copy is done when begin_next() returns.
class Copies {
 public:
  Copies(const Incoming& incoming, std::byte* into, std::size_t wanted, int device) noexcept
      : incoming_(incoming), into_(into), wanted_(wanted), total_(incoming.ring.sections_of(wanted)), device_(device) {}

  std::uint32_t total() const noexcept { return total_; }
  std::uint32_t begun() const noexcept { return begun_; }
  std::uint32_t ended() const noexcept { return ended_; }
  bool are_under_way() const noexcept { return begun_ != ended_; }
  bool may_begin() const noexcept { return begun_ != total_ && begun_ == ended_; }
  void begin_next() noexcept {
    const Ring& ring = incoming_.ring;
    const std::size_t begin = begun_ * ring.section_bytes, end = std::min(begin + ring.section_bytes, wanted_);
    const std::byte* const packed = incoming_.memory + begun_ % ring.sections * ring.section_bytes;
    result_ = copy_packed(into_ + begin, packed, end - begin, device_, incoming_.kind);
    ++begun_;
  }
  bool is_oldest_done() const noexcept { return true; }
  Result end_oldest() noexcept {
    ++ended_;
    return result_;
  }
  void end_all() noexcept { ended_ = begun_; }

 private:
  const Incoming& incoming_;
  std::byte* into_;
  std::size_t wanted_;
  std::uint32_t total_, begun_ = 0, ended_ = 0;
  int device_;
  Result result_ = Result::ok;
};

/// Waits until the sender has packed more than `sections` sections. Returns how many the sender has packed; 0 if it
/// never will.
std::uint32_t wait_for(const RingWords& words, std::uint32_t sections, pid_t sender) noexcept {
  constexpr unsigned looks = 1024;
  for (unsigned times = 1;; ++times) {
    const std::uint32_t packed = words.packed.load(std::memory_order_acquire);
    if (packed == RingWords::has_failed) return 0;
    if (packed > sections) return packed;
    // The sender may wait in the same way for what this process sends.
    drive_all();
    ::sched_yield();
    if (times % looks == 0 && fabric::registry::is_gone(sender)) return 0;
  }
}

template <class Work>
Result fetch_by(const Incoming& incoming, Work& work) noexcept {
  RingWords& words = incoming.words;
  Result result = Result::ok;
  while (result == Result::ok && work.ended() != work.total()) {
    const std::uint32_t packed = work.are_under_way() ? words.packed.load(std::memory_order_acquire)
                                                      : wait_for(words, work.begun(), incoming.sender);
    if (packed == 0 || packed == RingWords::has_failed) {
      result = Result::peer_failed;
      break;
    }
    while (work.may_begin() && work.begun() < packed) work.begin_next();
    // Sections that the sender packs while the oldest is under way are issued behind the oldest: a launch takes as long
    // as a short section.
    if (!work.is_oldest_done()) continue;
    result = work.end_oldest();
    // refuse() tells of the last section, together with all that is not wanted.
    if (work.ended() != work.total()) words.fetched.store(work.ended(), std::memory_order_release);
  }
  work.end_all();
  refuse(words);  // no more is wanted
  return result;
}

}  // namespace

void refuse(RingWords& words) noexcept { words.fetched.store(RingWords::all, std::memory_order_release); }

bool is_right(const Ring& ring, std::uint64_t room) noexcept {
  return ring.sections > 0 && ring.sections <= most_sections && ring.section_bytes > 0 &&
         ring.section_bytes <= room / ring.sections;
}

Result fetch(const Incoming& incoming, const Buffer& into, std::size_t wanted) noexcept {
  constexpr auto unpack = pack::Direction::unpack;
  Sections sections(into.job(unpack, 0, static_cast<layout::Offset>(wanted), incoming.memory), incoming.ring,
                    into.gpu(), reach_of(unpack, incoming.kind));
  return fetch_by(incoming, sections);
}

Result fetch(const Incoming& incoming, std::byte* into, std::size_t wanted, int device) noexcept {
  Copies copies(incoming, into, wanted, device);
  return fetch_by(incoming, copies);
}

}  // namespace gapless::transfer::rings
