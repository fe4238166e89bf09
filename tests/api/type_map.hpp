// The oracle: a type is the list of the bytes it names, in order, made word for word after the type maps of
// MPI 5.0, 5.1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

struct TypeMap {
  std::vector<std::int64_t> bytes;
  std::int64_t lower_bound = 0;
  std::int64_t upper_bound = 0;
  bool has_markers = false;  ///< bounds that were set explicitly hide those of other bytes (5.1.7)

  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size()); }
  std::int64_t extent() const { return upper_bound - lower_bound; }
  std::int64_t first() const { return bytes.empty() ? 0 : *std::min_element(bytes.begin(), bytes.end()); }
  std::int64_t end() const { return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()) + 1; }
  bool names_a_byte_twice() const { return std::set<std::int64_t>(bytes.begin(), bytes.end()).size() != bytes.size(); }

  std::int64_t blocks() const {
    std::int64_t count = 0;
    for (std::size_t k = 0; k < bytes.size(); ++k) count += k == 0 || bytes[k] != bytes[k - 1] + 1;
    return count;
  }

  std::int64_t lines() const {
    std::set<std::int64_t> lines;
    for (std::int64_t byte : bytes) lines.insert(byte >= 0 ? byte / 64 : -((63 - byte) / 64));
    return static_cast<std::int64_t>(lines.size());
  }
};

/// `child` once at each displacement, in order: what every constructor comes down to.
struct Placed {
  std::int64_t displacement;
  const TypeMap* child;
};

inline TypeMap place(const std::vector<Placed>& all) {
  TypeMap result;
  std::vector<std::int64_t> lower, upper;
  for (const auto& [displacement, child] : all) {
    for (std::int64_t byte : child->bytes) result.bytes.push_back(displacement + byte);
    if (child->has_markers && !result.has_markers) {
      lower.clear();
      upper.clear();
      result.has_markers = true;
    }
    if (child->has_markers || (!result.has_markers && !child->bytes.empty())) {
      lower.push_back(displacement + child->lower_bound);
      upper.push_back(displacement + child->upper_bound);
    }
  }
  if (!lower.empty()) {
    result.lower_bound = *std::min_element(lower.begin(), lower.end());
    result.upper_bound = *std::max_element(upper.begin(), upper.end());
  }
  return result;
}

inline TypeMap map_named(std::int64_t size, std::int64_t extent) {
  TypeMap result;
  for (std::int64_t byte = 0; byte < size; ++byte) result.bytes.push_back(byte);
  result.upper_bound = extent;
  return result;
}

/// hindexed, of which the vectors and indexed types are special cases; displacements in bytes.
inline TypeMap map_blocks(const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& displacements,
                          const TypeMap& child) {
  std::vector<Placed> all;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t j = 0; j < lengths[i]; ++j) all.push_back({displacements[i] + j * child.extent(), &child});
  }
  return place(all);
}

inline TypeMap map_repeated(std::int64_t count, const TypeMap& type) { return map_blocks({count}, {0}, type); }

/// A two-dimensional subarray in C order.
inline TypeMap map_subarray(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& subsizes,
                            const std::vector<std::int64_t>& starts, const TypeMap& child) {
  std::vector<Placed> all;
  for (std::int64_t i = starts[0]; i < starts[0] + subsizes[0]; ++i) {
    for (std::int64_t j = starts[1]; j < starts[1] + subsizes[1]; ++j) {
      all.push_back({(i * sizes[1] + j) * child.extent(), &child});
    }
  }
  TypeMap result = place(all);
  result.lower_bound = 0;
  result.upper_bound = sizes[0] * sizes[1] * child.extent();
  return result;
}
