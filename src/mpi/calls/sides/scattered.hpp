// Receives of noncontiguous memory that are the library's own, and that are looked at where as much has come as a
// header has. What the library has scattered must still be there then; so of several receives into one place at the
// same time, which MPI forbids and benchmarks do, only one is scattered. A persistent receive, which may be started at
// any time, is in the way of other persistent ones only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/hash.hpp"

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
  /// False if another one may be under way whose first byte is the same.
  bool begin(const void* first_byte) noexcept {
    end();
    return begin(places[slot_of(reinterpret_cast<std::uintptr_t>(first_byte), bits)], under_way);
  }
  /// It belongs to a persistent receive from now on. False, and it is none any more, if another such receive may have
  /// the same first byte.
  bool persist() noexcept {
    Place& place = *place_;
    end();
    return begin(place, persistent);
  }
  void end() noexcept {
    if (place_ != nullptr) place_->fetch_and(static_cast<std::uint8_t>(~mark_), std::memory_order_relaxed);
    place_ = nullptr;
  }

  /// Did any of the last ones get a header? Of a window the first few may, and others go packed when slots are short.
  static bool get_headers() noexcept { return without_header.load(std::memory_order_relaxed) < most_without_header; }
  static void note(bool header) noexcept {
    const unsigned before = without_header.load(std::memory_order_relaxed);
    const unsigned now = header ? 0 : before + 1;
    if (now != before && now <= most_without_header) without_header.store(now, std::memory_order_relaxed);
  }

 private:
  using Place = std::atomic<std::uint8_t>;  ///< of both kinds of receive, whether there is one
  static constexpr std::uint8_t under_way = 1, persistent = 2;

  bool begin(Place& place, std::uint8_t mark) noexcept {
    if ((place.fetch_or(mark, std::memory_order_relaxed) & mark) != 0) return false;
    place_ = &place;
    mark_ = mark;
    return true;
  }

  static constexpr unsigned bits = 10;
  inline static constinit std::array<Place, std::size_t{1} << bits> places{};
  static constexpr unsigned most_without_header = 64;
  inline static constinit std::atomic<unsigned> without_header{most_without_header};  ///< in a row
  Place* place_ = nullptr;
  std::uint8_t mark_ = under_way;
};

}  // namespace gapless::mpi
