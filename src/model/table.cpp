#include "model/table.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace gapless::model {
namespace {

constexpr std::size_t bytes_axis = 0, block_axis = 1, row_axis = 2;

std::vector<double> logs_of(const std::vector<double>& axis) {
  if (axis.empty()) throw std::invalid_argument("an axis is empty");
  std::vector<double> logs;
  for (const double value : axis) {
    if (!std::isfinite(value) || value <= 0) throw std::invalid_argument("an axis has a number that is not positive");
    if (!logs.empty() && std::log2(value) <= logs.back()) throw std::invalid_argument("an axis does not ascend");
    logs.push_back(std::log2(value));
  }
  return logs;
}

/// For each index the nearest one that is measured, the smaller of two. Nothing where none is.
std::vector<std::size_t> nearest(const std::vector<bool>& is_measured) {
  const std::size_t count = is_measured.size();
  std::vector<std::size_t> found(count, count);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_measured[i])
      found[i] = i;
    else if (i > 0)
      found[i] = found[i - 1];
  }
  for (std::size_t i = count, after = count; i-- > 0;) {
    if (is_measured[i]) after = i;
    const bool is_nearer = after < count && (found[i] == count || after - i < i - found[i]);
    if (is_nearer) found[i] = after;
  }
  if (count == 0 || found[0] == count) found.clear();
  return found;
}

}  // namespace

Table::Table(std::array<std::vector<double>, 3> axes, std::vector<double> ns) : log_ns_(std::move(ns)) {
  std::size_t cells = 1;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    logs_[axis] = logs_of(axes[axis]);
    cells *= axes[axis].size();
  }
  if (log_ns_.size() != cells) throw std::invalid_argument("there are not as many times as the axes have points");
  for (double& value : log_ns_) {
    if (std::isnan(value)) continue;
    if (!std::isfinite(value) || value <= 0) throw std::invalid_argument("a time is not positive");
    value = std::log2(value);
  }
  fill_gaps();
}

double& Table::cell(std::size_t i, std::size_t j, std::size_t k) noexcept {
  return log_ns_[(i * logs_[block_axis].size() + j) * logs_[row_axis].size() + k];
}

void Table::fill_gaps() {
  const std::size_t blocks = logs_[block_axis].size(), rows = logs_[row_axis].size();
  const auto fill_rows = [&](std::size_t i, std::size_t j) {
    std::vector<bool> is_measured(rows);
    for (std::size_t k = 0; k < rows; ++k) is_measured[k] = !std::isnan(cell(i, j, k));
    const std::vector<std::size_t> from = nearest(is_measured);
    for (std::size_t k = 0; k < from.size(); ++k) cell(i, j, k) = cell(i, j, from[k]);
    return !from.empty();
  };
  for (std::size_t i = 0; i < logs_[bytes_axis].size(); ++i) {
    std::vector<bool> has_time(blocks);
    for (std::size_t j = 0; j < blocks; ++j) has_time[j] = fill_rows(i, j);
    const std::vector<std::size_t> from = nearest(has_time);
    if (from.empty()) throw std::invalid_argument("nothing is measured of some number of bytes");
    for (std::size_t j = 0; j < blocks; ++j)
      for (std::size_t k = 0; k < rows; ++k) cell(i, j, k) = cell(i, from[j], k);
  }
}

Table::Place Table::find(std::size_t axis, double log) const noexcept {
  const std::vector<double>& points = logs_[axis];
  if (points.size() == 1 || log <= points.front()) return {0, 0};
  std::size_t before = points.size() - 2;
  while (before > 0 && points[before] > log) --before;
  return {before, std::min((log - points[before]) / (points[before + 1] - points[before]), 1.0)};
}

/// Along the axis of rows, of the line of cells that begins there.
double Table::between(Place rows, std::size_t line) const noexcept {
  const double* first = log_ns_.data() + line * logs_[row_axis].size() + rows.before;
  return rows.part > 0 ? std::lerp(first[0], first[1], rows.part) : first[0];
}

double Table::at(const Shape& shape) const noexcept {
  const double log_bytes = std::log2(shape.bytes);
  const Place bytes = find(bytes_axis, log_bytes);
  const Place block = find(block_axis, std::log2(shape.block));
  const Place rows = find(row_axis, std::log2(shape.row_blocks));
  const std::size_t blocks = logs_[block_axis].size();
  const auto of_bytes = [&](std::size_t i) {
    const std::size_t line = i * blocks + block.before;
    const double near = between(rows, line);
    return block.part > 0 ? std::lerp(near, between(rows, line + 1), block.part) : near;
  };
  double log_ns = of_bytes(bytes.before);
  if (bytes.part > 0) log_ns = std::lerp(log_ns, of_bytes(bytes.before + 1), bytes.part);
  return std::exp2(log_ns + std::max(log_bytes - logs_[bytes_axis].back(), 0.0));
}

}  // namespace gapless::model
