// An array that lives as long as one call.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>

namespace gapless {

/// An array of a call's length, without an allocation for the lengths that halo exchanges have.
template <class T>
class Scratch {
 public:
  explicit Scratch(int size) noexcept {
    if (size <= static_cast<int>(few_.size())) {
      if (size > 0) std::fill_n(few_.begin(), size, T{});
      return;
    }
    many_.reset(new (std::nothrow) T[static_cast<std::size_t>(size)]{});
    data_ = many_.get();
  }
  bool is_there() const noexcept { return data_ != nullptr; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T& operator[](int i) noexcept { return data_[i]; }

 private:
  std::array<T, 64> few_;  // NOLINT: set as far as the call's length
  std::unique_ptr<T[]> many_;
  T* data_ = few_.data();
};

}  // namespace gapless
