// slots: the sender packs into slots of the receiver's inbox, a header names the slots, and the receiver unpacks from
// them and frees them. The send is complete once it is packed: the sender waits for nothing. (The eager side of Wu et
// al., 2003, with one copy fewer.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/headers/lost_slots.hpp"
#include "transfer/message.hpp"

namespace gapless::transfer::schemes {

/// Messages of at least so many packed bytes, and at most `most_slots_bytes`, go by slots.
inline constexpr std::size_t least_slots_bytes = 1024;
inline constexpr unsigned most_slots = 32;
inline constexpr std::size_t most_slots_bytes = most_slots * headers::slot_bytes;
/// `bytes` may be a predicted amount.
constexpr bool may_take_slots(auto bytes) noexcept { return bytes >= least_slots_bytes && bytes <= most_slots_bytes; }

/// In a header: the slots of the receiver's inbox that the bytes are in, in packed order.
struct SlotsWay {
  static constexpr headers::WayKind kind = headers::WayKind::slots;
  std::uint32_t count = 0;
  std::array<std::uint8_t, most_slots> slots{};
};

/// One message on its sender's side. The destructor of a message that is not released frees the slots.
class SlotsOffer {
 public:
  SlotsOffer() noexcept = default;
  ~SlotsOffer() { withdraw(); }
  SlotsOffer(const SlotsOffer&) = delete;
  SlotsOffer& operator=(const SlotsOffer&) = delete;

  /// Gets slots for the whole buffer, packs into the first slot, and adds the slots to the header. False, and nothing
  /// is offered, where there are not enough free slots now.
  bool secure(const Buffer& buffer, headers::Inbox& inbox, headers::Header& header,
              const headers::Envelope& envelope = {}) noexcept;
  /// Packs the bytes that are not packed yet.
  void pack() noexcept;
  /// To be called when the header has been sent: the slots are the receiver's from now on. Packs the rest.
  void hand_over() noexcept;
  void withdraw() noexcept;

  explicit operator bool() const noexcept { return inbox_ != nullptr; }

 private:
  bool pack_next() noexcept;

  headers::Inbox* inbox_ = nullptr;
  Buffer buffer_{};
  SlotsWay way_;
  std::uint32_t packed_ = 0;
  model::Filling* filling_ = nullptr;
  double packing_ns_ = 0;  ///< where a report is wanted
};

/// Fetches the first `bytes` bytes of a message that has come to this process's own inbox, and frees its slots. Waits
/// for a sender that is still packing; peer_failed if the sender has ended.
Result fetch_from_slots(const headers::Header& header, const SlotsWay& way, const Buffer& into,
                        std::size_t bytes) noexcept;
/// Fetches into contiguous memory. `bytes` may be 0, which only frees the slots.
Result fetch_from_slots(const headers::Header& header, const SlotsWay& way, std::byte* into,
                        std::size_t bytes) noexcept;

}  // namespace gapless::transfer::schemes
