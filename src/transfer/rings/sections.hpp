// The work on one message whose packed bytes go through a ring: section after section, by a GPU several at a time, by
// the CPU one.
//
// A ring is a run of exported segments, cut into equal sections that are used in turn, so a message of any length goes
// through as much memory as there is: its sender packs section n + 1 while the receiver unpacks section n.
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
  std::uint32_t words = 0;  ///< whose number is it in the sender's inbox

  std::uint64_t bytes() const noexcept { return section_bytes * sections; }
  std::uint32_t sections_of(std::uint64_t message_bytes) const noexcept {
    return static_cast<std::uint32_t>((message_bytes + section_bytes - 1) / section_bytes);
  }
};

/// Jobs of one GPU, or of the CPU (no_gpu); begun and ended in order. Of the thread that calls begin_next(),
/// as long as any is under way.
class Sections {
 public:
  Sections() noexcept = default;
  /// Of the whole message, `whole.packed` being the ring. The layout and the memory must stay. `reader`: where the CPU
  /// packs for that of another process; stays.
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
  /// A section whose end others would hide has none behind it.
  bool may_begin() const noexcept {
    const bool is_alone = are_under_way() && newest().ends_with_queue;
    return begun_ != total_ && begun_ - ended_ < ring_.sections && !is_alone;
  }
  /// The packed byte that the next one begins with.
  layout::Offset next_byte() const noexcept {
    return static_cast<layout::Offset>(begun_) * static_cast<layout::Offset>(ring_.section_bytes);
  }

  /// Precondition: may_begin().
  void begin_next() noexcept;
  /// Precondition: one is under way.
  bool is_oldest_done() noexcept;
  /// Waits for the oldest that is under way.
  Result end_oldest() noexcept;
  /// Waits for all.
  void end_all() noexcept {
    while (are_under_way()) static_cast<void>(end_oldest());
  }
  /// The packed bytes from next_byte() on are taken from there from now on. Precondition: none is under way.
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
