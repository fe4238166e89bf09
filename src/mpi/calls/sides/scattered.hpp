// Receives into noncontiguous memory that are the library's own, and that gapless looks at if as many bytes as a header
// has have come. The bytes that the library has scattered must still be there when gapless looks. So of several
// receives into one memory at the same time, which MPI forbids and benchmarks do, only one is scattered. A persistent
// receive may be started at any time, and excludes other persistent ones alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/hash.hpp"
#include "mpi/lifetime/runtime.hpp"

namespace gapless::mpi {

/// One receive. Any thread.
class Scattered {
 public:
  Scattered() noexcept = default;
  ~Scattered() { end(); }
  Scattered(Scattered&& other) noexcept : place_(std::exchange(other.place_, nullptr)), mark_(other.mark_) {}
  Scattered& operator=(Scattered&& other) noexcept {
    end();
    place_ = std::exchange(other.place_, nullptr);
    mark_ = other.mark_;
    return *this;
  }

  /// Is a receive registered?
  explicit operator bool() const noexcept { return place_ != nullptr; }
  /// Registers a receive. False if another receive with the same first byte may be under way.
  bool begin(const void* first_byte) noexcept {
    end();
    return begin(places[slot_of(reinterpret_cast<std::uintptr_t>(first_byte), bits)], under_way);
  }
  /// Makes the registered receive persistent. False, and none is registered any more, if another persistent receive may
  /// have the same first byte.
  bool persist() noexcept {
    Place& place = *place_;
    end();
    return begin(place, persistent);
  }
  void end() noexcept {
    if (place_ != nullptr) change(*place_, 0);
    place_ = nullptr;
  }

  /// Has any of the last receives got a header? In a row of messages the first few may go by header, and the rest
  /// packed when slots are short.
  static bool got_header_lately() noexcept {
    return without_header.load(std::memory_order_relaxed) < most_without_header;
  }
  static void note(bool header) noexcept {
    const unsigned before = without_header.load(std::memory_order_relaxed);
    const unsigned now = header ? 0 : before + 1;
    if (now != before && now <= most_without_header) without_header.store(now, std::memory_order_relaxed);
  }

 private:
  using Place = std::atomic<std::uint8_t>;  ///< whether there is a receive, a bit for each kind
  static constexpr std::uint8_t under_way = 1, persistent = 2;

  bool begin(Place& place, std::uint8_t mark) noexcept {
    mark_ = mark;
    if ((change(place, mark) & mark) != 0) return false;
    place_ = &place;
    return true;
  }
  /// The place gets the mark, or loses the mark where `to` is 0. Returns what was there. Where one thread at a time
  /// receives, a locked instruction would take as long as the rest of a look.
  std::uint8_t change(Place& place, std::uint8_t to) const noexcept {
    const auto others = static_cast<std::uint8_t>(~mark_);
    if (runtime::is_multithreaded())
      return to != 0 ? place.fetch_or(to, std::memory_order_relaxed)
                     : place.fetch_and(others, std::memory_order_relaxed);
    const std::uint8_t before = place.load(std::memory_order_relaxed);
    place.store(static_cast<std::uint8_t>((before & others) | to), std::memory_order_relaxed);
    return before;
  }

  static constexpr unsigned bits = 10;
  inline static constinit std::array<Place, std::size_t{1} << bits> places{};
  static constexpr unsigned most_without_header = 64;
  inline static constinit std::atomic<unsigned> without_header{most_without_header};  ///< in a row
  Place* place_ = nullptr;
  std::uint8_t mark_ = under_way;
};

}  // namespace gapless::mpi
