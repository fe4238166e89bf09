// The work on one message whose packed bytes go through a ring: section after section. A GPU works on several sections
// at a time, the CPU on one.
//
// A ring is a run of exported segments, cut into equal sections that are used in turn. So a message of any length goes
// through a ring of any length: the sender packs section n + 1 while the receiver unpacks section n.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/corrections/filling.hpp"
#include "pack/gpu_engine.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer::rings {

/// Sections of one ring at most.
inline constexpr std::uint32_t most_sections = 8;

/// Plain bytes, for they are told to other processes.
struct Ring {
  std::uint64_t section_bytes = 0;
  std::uint32_t sections = 0;
  std::uint32_t words = 0;  ///< the number of the ring's words in the sender's inbox

  std::uint64_t bytes() const noexcept { return section_bytes * sections; }
  std::uint32_t sections_of(std::uint64_t message_bytes) const noexcept {
    return static_cast<std::uint32_t>((message_bytes + section_bytes - 1) / section_bytes);
  }
};

/// Jobs, one a section, for one GPU or for the CPU (no_gpu). Sections begin and end in order. While a section is under
/// way, only the thread that began it may use the object.
class Sections {
 public:
  Sections() noexcept = default;
  /// `whole` is the job of the whole message, with the ring in the place of packed bytes; its layout and memory must
  /// stay. `reader`, where the CPU packs for the CPU of another process: how to fill the ring; must stay as well.
  Sections(const pack::Job& whole, const Ring& ring, int device, pack::Reach reach,
           model::Filling* reader = nullptr) noexcept
      : whole_(whole),
        ring_(ring),
        total_(ring.sections_of(static_cast<std::uint64_t>(whole.end))),
        device_(device),
        reach_(reach),
        reader_(reader) {}

  std::uint32_t total() const noexcept { return total_; }
  std::uint32_t begun() const noexcept { return begun_; }
  std::uint32_t ended() const noexcept { return ended_; }
  bool are_under_way() const noexcept { return begun_ != ended_; }
  /// No section begins behind one if later work would delay the news of that one's end.
  bool may_begin() const noexcept {
    const bool is_alone = are_under_way() && newest().ends_with_queue;
    return begun_ != total_ && begun_ - ended_ < ring_.sections && !is_alone;
  }
  /// The packed byte that the next section begins with.
  layout::Offset next_byte() const noexcept {
    return static_cast<layout::Offset>(begun_) * static_cast<layout::Offset>(ring_.section_bytes);
  }

  /// Precondition: may_begin().
  void begin_next() noexcept;
  /// Precondition: a section is under way.
  bool is_oldest_done() noexcept;
  /// Waits for the oldest section that is under way.
  Result end_oldest() noexcept;
  /// Waits for all.
  void end_all() noexcept {
    while (are_under_way()) static_cast<void>(end_oldest());
  }
  /// From now on, packed bytes from next_byte() on are taken from `memory`. Precondition: no section is under way.
  void move_to(const layout::Layout& contiguous, void* memory, pack::Reach reach) noexcept;

 private:
  const pack::Ticket& newest() const noexcept { return tickets_[(begun_ - 1) % most_sections]; }

  pack::Job whole_{};
  Ring ring_{};
  std::array<pack::Ticket, most_sections> tickets_{};
  std::uint32_t total_ = 0, begun_ = 0, ended_ = 0;
  int device_ = no_gpu;
  pack::Reach reach_ = pack::Reach::this_gpu;
  model::Filling* reader_ = nullptr;
};

}  // namespace gapless::transfer::rings
