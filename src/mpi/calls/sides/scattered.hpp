// Receives of noncontiguous memory that are the library's own, and that are looked at where as much has come as a
// header has. What the library has scattered must still be there then; so of several receives into one place at the
// same time, which MPI forbids and benchmarks do, only one is scattered.
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
  Scattered(Scattered&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
  Scattered& operator=(Scattered&& other) noexcept {
    end();
    place_ = std::exchange(other.place_, nullptr);
    return *this;
  }

  /// Is it one?
  explicit operator bool() const noexcept { return place_ != nullptr; }
  /// False if another one may be under way whose first byte is the same.
  bool begin(const void* first_byte) noexcept {
    end();
    Place& place = places[place_of(reinterpret_cast<std::uintptr_t>(first_byte), bits)];
    Place::value_type nobody = 0;
    if (!place.compare_exchange_strong(nobody, 1, std::memory_order_relaxed)) return false;
    place_ = &place;
    return true;
  }
  void end() noexcept {
    if (place_ != nullptr) place_->store(0, std::memory_order_relaxed);
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
  using Place = std::atomic<std::uint8_t>;
  static constexpr unsigned bits = 10;
  inline static constinit std::array<Place, std::size_t{1} << bits> places{};
  static constexpr unsigned most_without_header = 64;
  inline static constinit std::atomic<unsigned> without_header{most_without_header};  ///< in a row
  Place* place_ = nullptr;
};

}  // namespace gapless::mpi
