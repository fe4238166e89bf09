// What `gapless calibrate` measures of a fabric, measured here by the same messages as the rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "layout/algebra/canonical.hpp"
#include "pack/host/engine.hpp"
#include "process.hpp"

namespace gapless::bench {

/// Messages of so many blocks of that length in the matrix.
class Calibration {
 public:
  explicit Calibration(Process& process) : process_(process) {}

  /// An operation for each block, and no copies: most costs are differences.
  Costs costs() {
    constexpr std::size_t few = 4, many = 128, bytes = 64 << 10, large = 1 << 20, small = 12 << 10;
    const double plain = message_ns(Scheme::multi_write, few, bytes);
    Costs found{};
    found.operation_ns = std::max((message_ns(Scheme::multi_write, many, bytes) - plain) / (many - few), 1.0);
    found.byte_ns = std::max((message_ns(Scheme::multi_write, few, large) - plain) / (large - bytes), 0.001);
    found.copied_byte_ns = std::max(copy_ns(many, large) / large, 0.001);
    const double told = message_ns(Scheme::multi_write, 1, small), untold = message_ns(Scheme::pipelined, 1, small);
    const double telling = std::max(told - untold + 2 * small * found.copied_byte_ns, 0.0);
    found.notification_ns = std::max(telling, found.operation_ns);
    // Eight segments: what remains of the copies.
    constexpr double segments = 8, hideable = 1 - 1 / segments;
    const double copies = 2 * large * found.copied_byte_ns;
    const double moved = plain - telling + (segments - few) * found.operation_ns + (large - bytes) * found.byte_ns;
    const double left = message_ns(Scheme::pipelined, many, large) - moved;
    found.overlap = std::clamp((copies - left) / (copies * hideable), 0.0, 1.0);
    return found;
  }

 private:
  Memory memory(std::size_t blocks, std::size_t bytes) {
    const auto layout = layout::repeat(layout::block(0, static_cast<Offset>(bytes / blocks)),
                                       static_cast<Offset>(blocks), static_cast<Offset>(matrix_.size() / blocks));
    return memory_of(layout, layout::facts_of(*layout), {1, 0}, matrix_.data());
  }

  template <class Call>
  double median_ns(Call call) {
    std::vector<double> times;
    for (int i = 0; i < 60; ++i) {
      process_.meet();
      const auto start = Clock::now();
      call();
      times.push_back(seconds_since(start) * 1e9);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  /// Half a round trip.
  double message_ns(Scheme scheme, std::size_t blocks, std::size_t bytes) {
    const Memory moved = memory(blocks, bytes);
    return median_ns([&] {
             process_.move(0, 1, moved, only(scheme));
             process_.move(1, 1, moved, only(scheme));
           }) /
           2;
  }

  double copy_ns(std::size_t blocks, std::size_t bytes) {
    const Memory copied = memory(blocks, bytes);
    return median_ns([&] {
      pack::host::run(
          {copied.layout.get(), copied.outer, 0, copied.size(), pack::Direction::pack, copied.origin, packed_.data()});
    });
  }

  Process& process_;
  std::vector<std::byte> matrix_ = std::vector<std::byte>(matrix_bytes);
  std::vector<std::byte> packed_ = std::vector<std::byte>(matrix_bytes / 2);
};

}  // namespace gapless::bench
