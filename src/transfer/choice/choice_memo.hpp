// What was chosen last for a datatype, so that equal messages ask no model.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace gapless::transfer {

/// The choice for one count of one datatype. Threads may read and write at once: a memo is one word.
class ChoiceMemo {
 public:
  static constexpr unsigned bits = 16;  ///< of a choice

  ChoiceMemo() noexcept = default;
  // A copy describes a datatype of its own.
  ChoiceMemo(const ChoiceMemo&) noexcept {}
  ChoiceMemo& operator=(const ChoiceMemo&) noexcept { return *this; }

  /// The choice; none where the last one was for another count, or for another version of what choices rest on.
  std::optional<std::uint16_t> find(std::int64_t count, std::uint16_t version) const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    if (!fits(count) || (word >> bits) != name_of(count, version)) return std::nullopt;
    return static_cast<std::uint16_t>(word);
  }
  void keep(std::int64_t count, std::uint16_t version, std::uint16_t chosen) const noexcept {
    if (fits(count)) word_.store(name_of(count, version) << bits | chosen, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t most = ~std::uint32_t{0};

  static constexpr bool fits(std::int64_t count) noexcept { return count > 0 && count <= most; }
  static constexpr std::uint64_t name_of(std::int64_t count, std::uint16_t version) noexcept {
    return static_cast<std::uint64_t>(count) << 16 | version;
  }

  mutable std::atomic<std::uint64_t> word_{0};
};

}  // namespace gapless::transfer
