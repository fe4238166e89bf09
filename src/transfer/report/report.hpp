// What `gapless report` is made from: for each scheme, side, size and block length how many messages there were, what
// packing, unpacking and sending them took, and what was predicted; and the datatypes with their schemes.
//
// Only with GAPLESS_REPORT. Then every message that moves bytes is counted under a lock.
#pragma once

#include <chrono>
#include <limits>

#include "transfer/message.hpp"

namespace gapless::transfer {

inline constexpr double untimed_ns = std::numeric_limits<double>::quiet_NaN();

bool report_wanted() noexcept;

// Each adds one line's worth of what has happened. Thread-safe; without memory nothing is added.

/// A movement of that many packed bytes, of which the time may be unknown.
void report_moved(const Buffer& buffer, Side side, Scheme scheme, std::size_t bytes, double ns) noexcept;
/// A movement of which the caller knows the prediction; that is not finite where nothing was predicted.
void report_moved(const Buffer& buffer, Side side, Scheme scheme, std::size_t bytes, double ns,
                  double predicted_ns) noexcept;
/// A whole buffer whose bytes are moved, untimed, as the statistics count it too.
void record_moved(const Buffer& buffer, Side side, Scheme scheme) noexcept;
/// A blocking call that has sent, and what was predicted of the message; not finite where nothing was.
void report_send(const Buffer& buffer, Scheme scheme, double ns, double predicted_ns) noexcept;
/// A message that went to the library as it came, before anything but its size was asked.
void report_native(std::size_t bytes, Side side) noexcept;
/// Undoes report_native() with the same arguments.
void take_back_native(std::size_t bytes, Side side) noexcept;

/// Measures a movement where a report is wanted.
class MovementClock {
 public:
  void begin() noexcept {
    if (report_wanted()) begin_ = std::chrono::steady_clock::now();
  }
  double ns() const noexcept {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_{};
};

/// Writes it to the path of GAPLESS_REPORT, with the rank among so many: all since the process began. What goes wrong
/// is said on stderr. `version` is what the MPI library says of itself.
void write_report(int rank, int ranks, const char* version) noexcept;

}  // namespace gapless::transfer
