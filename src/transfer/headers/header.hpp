// A header travels in a message's place between two processes that both run gapless, and offers ways to fetch the
// message's bytes. The receiver chooses a way.
//
// A header has 480 bytes: programs seldom send messages of that length, and 480 is a multiple of the size of every
// basic datatype, so a header can be received as elements of any of them. A header begins and ends with the receiver's
// nonce, random bytes that a program's message has by 32 bytes' chance alone.
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

/// Ways to fetch the bytes. The data of each way is a struct with `static constexpr WayKind kind`.
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

  /// The packed bytes of the message.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// The process that sends.
  std::int32_t sender() const noexcept { return sender_; }

  /// Offers a way. False if the header has no room for its data.
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
  /// The data of that way; nothing if the way is not offered.
  template <class Way>
  std::optional<Way> way() const noexcept {
    std::optional<Way> found;
    visit([&](const Entry& entry, const std::byte* data) {
      if (found || entry.kind != Way::kind || entry.bytes != sizeof(Way)) return;
      std::memcpy(&found.emplace(), data, sizeof(Way));
    });
    return found;
  }
  /// All offered ways that this process knows.
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

  /// Calls visit(entry, data) for each offered way. Another process has written the entries, so nothing is read beyond
  /// the header.
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

/// Wipes the nonce at the beginning of a copy of a header, so that a later receive into that memory that gets no bytes
/// finds no header there.
inline void wipe(void* copy) noexcept { ::explicit_bzero(copy, sizeof(Nonce)); }

}  // namespace gapless::transfer::headers
