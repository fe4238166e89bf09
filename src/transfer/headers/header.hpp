// What travels in a message's place between two processes that both run gapless: a header, which offers ways to fetch
// the message's bytes. The receiver chooses one of them.
//
// A header has the length of no message that a program would send often, and 480 is a multiple of the size of every
// basic datatype, so that it can be received as any of them. It begins and ends with the receiver's nonce, random bytes
// that no message of a program has but by 32 bytes' chance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

namespace gapless::transfer::headers {

using Nonce = std::array<std::byte, 16>;

/// Ways to fetch the bytes. Each has a struct of its data with `static constexpr WayKind kind`.
enum class WayKind : std::uint16_t { none, slots, fabric };

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
    for (std::size_t at = 0; at + sizeof(Entry) <= used_ && used_ <= ways_.size();) {
      Entry entry;
      std::memcpy(&entry, ways_.data() + at, sizeof entry);
      at += sizeof entry;
      if (entry.kind == Way::kind && entry.bytes == sizeof(Way) && at + sizeof(Way) <= used_) {
        Way way;
        std::memcpy(&way, ways_.data() + at, sizeof way);
        return way;
      }
      at += entry.bytes;
    }
    return std::nullopt;
  }

 private:
  struct Entry {
    WayKind kind;
    std::uint16_t bytes;
  };

  Nonce begin_{};
  std::uint64_t bytes_ = 0;
  std::int32_t sender_ = 0;
  std::uint32_t used_ = 0;  ///< bytes of ways_
  std::array<std::byte, 432> ways_{};
  Nonce end_{};
};
static_assert(sizeof(Header) == Header::size && std::is_trivially_copyable_v<Header>);

}  // namespace gapless::transfer::headers
