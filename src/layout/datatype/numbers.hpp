// A list of counts, lengths or displacements, as wide as its owner has it: a list of millions is not copied to be read.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "layout/offset_table.hpp"

namespace gapless::layout {

class Numbers {
 public:
  Numbers() = default;
  Numbers(std::span<const std::int32_t> values) noexcept : narrow_(values.data()), size_(values.size()) {}
  template <class List>
  requires std::convertible_to<const List&, std::span<const Offset>> Numbers(const List& list)
  noexcept : size_(std::span<const Offset>(list).size()) { wide_ = std::span<const Offset>(list).data(); }

  std::size_t size() const noexcept { return size_; }
  Offset operator[](std::size_t i) const noexcept { return narrow_ != nullptr ? Offset{narrow_[i]} : wide_[i]; }

 private:
  const std::int32_t* narrow_ = nullptr;
  const Offset* wide_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace gapless::layout
