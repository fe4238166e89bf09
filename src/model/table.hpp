// Measured times as a table over what a message is, and what lies between its points.
//
// Times of messages are no lines: they have the steps of protocols and caches. Between measured points the logarithm of
// the time is linear in the logarithms of all axes, so that powers are met exactly.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "model/host.hpp"

namespace gapless::model {

/// What times depend on: packed bytes, the mean length of a block in bytes, and how many blocks a row has.
struct Shape {
  double bytes;
  double block;
  double row_blocks;
};

constexpr Shape shape_of(const Amount& amount) noexcept {
  return {amount.bytes, amount.bytes / amount.blocks, amount.blocks / amount.rows};
}

class Table {
 public:
  /// Axes in the order of Shape's members, each of positive numbers that ascend. `ns` has bytes as its slowest axis and
  /// row_blocks as its fastest; NaN where nothing is measured, which gets the time of the nearest block or row of the
  /// same bytes. Throws std::invalid_argument, with what is wrong, also where there is nothing for some bytes.
  Table(std::array<std::vector<double>, 3> axes, std::vector<double> ns);

  /// Nanoseconds, for a shape of positive numbers. Beyond the axes' ends the nearest point counts; longer messages than
  /// measured take longer in proportion. Thread-safe; no allocation.
  double at(const Shape& shape) const noexcept;

 private:
  /// A place on an axis: the point before it, and how far it is to the next.
  struct Place {
    std::size_t before;
    double part;
  };
  Place find(std::size_t axis, double log) const noexcept;
  void fill_gaps();
  double& cell(std::size_t i, std::size_t j, std::size_t k) noexcept;
  double between(Place rows, std::size_t line) const noexcept;

  std::array<std::vector<double>, 3> logs_;  ///< of the axes, to base 2
  std::vector<double> log_ns_;
};

}  // namespace gapless::model
