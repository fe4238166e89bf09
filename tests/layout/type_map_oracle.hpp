// A datatype as MPI defines it: a list of every byte it names, in order, built by the definitions of MPI 5.0 chapter 5
// one element at a time. Slow and plain, and shares no code with what it is compared to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gapless::testing {

struct TypeMap {
  std::vector<std::int64_t> bytes;  ///< memory offset of packed byte 0, 1, …
  std::int64_t lower_bound = 0;
  std::int64_t upper_bound = 0;
  bool has_markers = false;  ///< bounds were set by resized, subarray or darray

  std::int64_t extent() const { return upper_bound - lower_bound; }
  std::int64_t true_lower_bound() const { return bytes.empty() ? 0 : *std::min_element(bytes.begin(), bytes.end()); }
  std::int64_t true_upper_bound() const {
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()) + 1;
  }
};

/// Puts copies of types at displacements and applies the rule for bounds at the end.
class TypeMapBuilder {
 public:
  void add(const TypeMap& child, std::int64_t displacement) {
    for (const std::int64_t byte : child.bytes) map_.bytes.push_back(byte + displacement);
    if (child.bytes.empty() && !child.has_markers) return;
    auto& bounds = child.has_markers ? markers_ : natural_;
    bounds.push_back({child.lower_bound + displacement, child.upper_bound + displacement});
  }

  TypeMap finish() {
    const auto& bounds = markers_.empty() ? natural_ : markers_;
    map_.has_markers = !markers_.empty();
    if (bounds.empty()) return map_;
    map_.lower_bound = std::numeric_limits<std::int64_t>::max();
    map_.upper_bound = std::numeric_limits<std::int64_t>::min();
    for (const auto& [lower, upper] : bounds) {
      map_.lower_bound = std::min(map_.lower_bound, lower);
      map_.upper_bound = std::max(map_.upper_bound, upper);
    }
    return map_;
  }

  TypeMap finish_with_markers(std::int64_t lower_bound, std::int64_t upper_bound) {
    map_.lower_bound = lower_bound;
    map_.upper_bound = upper_bound;
    map_.has_markers = true;
    return map_;
  }

 private:
  struct BoundPair {
    std::int64_t lower, upper;
  };
  TypeMap map_;
  std::vector<BoundPair> natural_, markers_;
};

namespace type_map {

using List = std::vector<std::int64_t>;

inline TypeMap basic(std::int64_t size) {
  TypeMap map;
  for (std::int64_t i = 0; i < size; ++i) map.bytes.push_back(i);
  map.upper_bound = size;
  return map;
}

/// A C struct of two values.
inline TypeMap pair(std::int64_t value_size, std::int64_t index_size, std::int64_t index_offset, std::int64_t extent) {
  TypeMap map = basic(value_size);
  for (std::int64_t i = 0; i < index_size; ++i) map.bytes.push_back(index_offset + i);
  map.upper_bound = extent;
  return map;
}

inline TypeMap hvector(std::int64_t count, std::int64_t block_length, std::int64_t stride, const TypeMap& child) {
  TypeMapBuilder builder;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < block_length; ++j) builder.add(child, i * stride + j * child.extent());
  }
  return builder.finish();
}

inline TypeMap vector(std::int64_t count, std::int64_t block_length, std::int64_t stride, const TypeMap& child) {
  return hvector(count, block_length, stride * child.extent(), child);
}

inline TypeMap contiguous(std::int64_t count, const TypeMap& child) { return hvector(count, 1, child.extent(), child); }

inline TypeMap structure(const List& block_lengths, const List& displacements, const std::vector<TypeMap>& children) {
  TypeMapBuilder builder;
  for (std::size_t i = 0; i < block_lengths.size(); ++i) {
    for (std::int64_t j = 0; j < block_lengths[i]; ++j) {
      builder.add(children[i], displacements[i] + j * children[i].extent());
    }
  }
  return builder.finish();
}

inline TypeMap hindexed(const List& block_lengths, const List& displacements, const TypeMap& child) {
  return structure(block_lengths, displacements, std::vector<TypeMap>(block_lengths.size(), child));
}

inline TypeMap indexed(const List& block_lengths, List displacements, const TypeMap& child) {
  for (std::int64_t& displacement : displacements) displacement *= child.extent();
  return hindexed(block_lengths, displacements, child);
}

inline TypeMap resized(TypeMap child, std::int64_t lower_bound, std::int64_t extent) {
  child.lower_bound = lower_bound;
  child.upper_bound = lower_bound + extent;
  child.has_markers = true;
  return child;
}

/// Visits every element of an array in storage order and takes those that `is_mine(dimension, index)` in all
/// dimensions.
template <class IsMine>
TypeMap array(const List& sizes, bool is_fortran, const TypeMap& child, IsMine is_mine) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  TypeMapBuilder builder;
  for (std::int64_t element = 0; element < elements; ++element) {
    std::int64_t rest = element;
    bool mine = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t dimension = is_fortran ? i : sizes.size() - 1 - i;
      mine = mine && is_mine(dimension, rest % sizes[dimension]);
      rest /= sizes[dimension];
    }
    if (mine) builder.add(child, element * child.extent());
  }
  return builder.finish_with_markers(0, elements * child.extent());
}

inline TypeMap subarray(const List& sizes, const List& subsizes, const List& starts, bool is_fortran,
                        const TypeMap& child) {
  return array(sizes, is_fortran, child,
               [&](std::size_t d, std::int64_t i) { return i >= starts[d] && i < starts[d] + subsizes[d]; });
}

/// `blocks` is the size of a block in each dimension, whatever the distribution that gave it.
inline TypeMap darray(std::int64_t rank, const List& sizes, const List& blocks, const List& grid, bool is_fortran,
                      const TypeMap& child) {
  List coordinates(grid.size());
  for (std::size_t d = grid.size(); d-- > 0;) {
    coordinates[d] = rank % grid[d];
    rank /= grid[d];
  }
  return array(sizes, is_fortran, child,
               [&](std::size_t d, std::int64_t i) { return i / blocks[d] % grid[d] == coordinates[d]; });
}

}  // namespace type_map

}  // namespace gapless::testing
