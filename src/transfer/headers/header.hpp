// What travels in a message's place between two processes that both run gapless: a header, which offers ways to fetch
// the message's bytes. The receiver chooses one of them.
//
// A header has the length of no message that a program would send often, and 480 is a multiple of the size of every
// basic datatype, so that it can be received as any of them. It begins and ends with the receiver's nonce, random bytes
// that no message of a program has but by 32 bytes' chance.
#pragma once

#include <string.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <type_traits>

namespace gapless::transfer::headers {

using Nonce = std::array<std::byte, 16>;

/// Ways to fetch the bytes. Each has a struct of its data with `static constexpr WayKind kind`.
enum class WayKind : std::uint16_t { none, slots, exported, fabric, pulled };
inline constexpr unsigned way_count = 5;  ///< of WayKind, none included

/// Some of the ways.
class WaySet {
 public:
  constexpr WaySet() noexcept = default;
  constexpr WaySet(std::initializer_list<WayKind> ways) noexcept {
    for (const WayKind way : ways) add(way);
  }
  constexpr void add(WayKind way) noexcept { bits_ |= 1u << static_cast<unsigned>(way); }
  constexpr bool has(WayKind way) const noexcept { return (bits_ >> static_cast<unsigned>(way) & 1u) != 0; }
  friend constexpr bool operator==(const WaySet&, const WaySet&) noexcept = default;

 private:
  std::uint32_t bits_ = 0;
};

class Header {
 public:
  static constexpr std::size_t size = 480;

  Header() noexcept = default;
  Header(const Nonce& nonce, std::uint64_t bytes, std::int32_t sender) noexcept
      : begin_(nonce), bytes_(bytes), sender_(sender), end_(nonce) {}

  bool has(const Nonce& nonce) const noexcept { return begin_ == nonce && end_ == nonce; }
  /// The message's own, packed.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// The process that sends.
  std::int32_t sender() const noexcept { return sender_; }

  /// Offers a way. False if there is no room for it.
  template <class Way>
  bool add(const Way& way) noexcept {
    static_assert(std::is_trivially_copyable_v<Way>);
    const Entry entry{Way::kind, sizeof way};
    if (used_ + sizeof entry + sizeof way > ways_.size()) return false;
    std::memcpy(ways_.data() + used_, &entry, sizeof entry);
    std::memcpy(ways_.data() + used_ + sizeof entry, &way, sizeof way);
    used_ += static_cast<std::uint32_t>(sizeof entry + sizeof way);
    return true;
  }
  /// What that way is offered with; nothing if it is not.
  template <class Way>
  std::optional<Way> way() const noexcept {
    std::optional<Way> found;
    visit([&](const Entry& entry, const std::byte* data) {
      if (found || entry.kind != Way::kind || entry.bytes != sizeof(Way)) return;
      std::memcpy(&found.emplace(), data, sizeof(Way));
    });
    return found;
  }
  /// All that are offered, but for those that this process knows nothing of.
  WaySet ways() const noexcept {
    WaySet result;
    visit([&](const Entry& entry, const std::byte*) {
      if (static_cast<unsigned>(entry.kind) < way_count) result.add(entry.kind);
    });
    return result;
  }

 private:
  struct Entry {
    WayKind kind;
    std::uint16_t bytes;
  };

  /// Calls visit(entry, its data) for each. What came from another process is believed only within bounds.
  template <class Visit>
  void visit(Visit visit) const noexcept {
    if (used_ > ways_.size()) return;
    for (std::size_t at = 0; at + sizeof(Entry) <= used_;) {
      Entry entry;
      std::memcpy(&entry, ways_.data() + at, sizeof entry);
      at += sizeof entry;
      if (at + entry.bytes > used_) return;
      visit(entry, ways_.data() + at);
      at += entry.bytes;
    }
  }

  Nonce begin_{};
  std::uint64_t bytes_ = 0;
  std::int32_t sender_ = 0;
  std::uint32_t used_ = 0;  ///< bytes of ways_
  std::array<std::byte, 432> ways_{};
  Nonce end_{};
};
static_assert(sizeof(Header) == Header::size && std::is_trivially_copyable_v<Header>);

/// Wipes the nonce that a copy of a header begins with, so that whatever receives into that memory later, and gets
/// nothing, finds no header there.
inline void wipe(void* copy) noexcept { ::explicit_bzero(copy, sizeof(Nonce)); }

}  // namespace gapless::transfer::headers
