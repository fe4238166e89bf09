// The last few values of what varies from time to time, and their median.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gapless::model {

/// The last `most` values.
template <std::size_t most>
class Recent {
 public:
  void add(float value) noexcept {
    last_[count_ % most] = value;
    // The count wraps to `most`, so are_enough() stays true.
    count_ = count_ + 1 == 2 * most ? most : count_ + 1;
  }
  /// Divides every value.
  void divide_by(float divisor) noexcept {
    for (float& value : last_) value /= divisor;
  }

  bool are_enough() const noexcept { return count_ >= most; }
  /// How many were added; once there are enough, between one and two times as many.
  std::uint32_t count() const noexcept { return count_; }
  /// `none` before the first.
  float greatest(float none) const noexcept {
    const auto known = static_cast<std::ptrdiff_t>(std::min<std::size_t>(count_, most));
    return known == 0 ? none : *std::max_element(last_.begin(), last_.begin() + known);
  }
  /// `none` before the first.
  float median(float none) const noexcept {
    const std::size_t known = std::min<std::size_t>(count_, most);
    if (known == 0) return none;
    std::array<float, most> sorted = last_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(known / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(known));
    return *middle;
  }

 private:
  std::array<float, most> last_{};
  std::uint32_t count_ = 0;
};

}  // namespace gapless::model
