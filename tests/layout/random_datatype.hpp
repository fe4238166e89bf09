// Random nested datatypes of every constructor, each with its type map and its text form.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "layout/datatype/datatype.hpp"
#include "type_map_oracle.hpp"

namespace gapless::testing {

struct RandomDatatype {
  layout::Datatype type;
  TypeMap map;
  std::string text;  ///< as parse_datatype reads it
};

/// Draws types of at most `most_bytes` bytes, nested up to `depth` constructors deep. Counts may be 0, displacements
/// and strides are of any sign, blocks may overlap and touch.
class DatatypeGenerator {
 public:
  explicit DatatypeGenerator(std::uint64_t seed, std::int64_t most_bytes = 160)
      : random_(seed), most_bytes_(most_bytes) {}

  RandomDatatype draw(int depth) {
    if (depth == 0) return basic();
    switch (below(13)) {
      case 0:
        return contiguous(depth);
      case 1:
      case 2:
        return vector(depth);
      case 3:
        return hvector(depth);
      case 4:
        return indexed(depth);
      case 5:
        return hindexed(depth);
      case 6:
        return indexed_block(depth);
      case 7:
        return hindexed_block(depth);
      case 8:
      case 9:
        return structure(depth);
      case 10:
        return subarray(depth);
      case 11:
        return darray(depth);
      default:
        return resized(depth);
    }
  }

  std::mt19937_64& random() { return random_; }
  /// Uniform in [0, bound).
  std::int64_t below(std::int64_t bound) { return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random_); }
  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }

 private:
  using List = type_map::List;

  static std::string text_of(std::int64_t number) { return std::to_string(number); }
  static std::string text_of(const std::string& text) { return text; }
  static std::string text_of(const List& numbers) {
    std::string text = "[";
    for (std::size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
    return text + "]";
  }
  template <class... Arguments>
  static std::string call(const std::string& name, const Arguments&... arguments) {
    std::string text;
    ((text += (text.empty() ? "" : ", ") + text_of(arguments)), ...);
    return name + "(" + text + ")";
  }

  /// How many children of `child`'s size still fit; empty children are limited by their bounds' sake only.
  std::int64_t room_for(const RandomDatatype& child) const {
    return child.map.bytes.empty() ? 6 : most_bytes_ / static_cast<std::int64_t>(child.map.bytes.size());
  }
  /// A count of 0, 1 or more, at most `room`.
  std::int64_t count(std::int64_t room) {
    if (below(16) == 0) return 0;
    return std::min(between(1, below(3) == 0 ? 12 : 4), std::max<std::int64_t>(room, 0));
  }

  RandomDatatype basic() {
    struct Named {
      const char* name;
      std::int64_t size;
    };
    static constexpr Named names[] = {{"byte", 1}, {"char", 1},  {"short", 2},  {"int", 4},
                                      {"int", 4},  {"float", 4}, {"double", 8}, {"c_double_complex", 16}};
    struct Pair {
      const char* name;
      std::int64_t value, index, offset, extent;
    };
    static constexpr Pair pairs[] = {{"double_int", 8, 4, 8, 16},
                                     {"short_int", 2, 4, 4, 8},
                                     {"float_int", 4, 4, 4, 8},
                                     {"long_double_int", 16, 4, 16, 32},
                                     {"value_index(short, double)", 2, 8, 8, 16}};
    if (below(8) == 0) {
      const Pair pair = pairs[below(std::size(pairs))];
      return {layout::pair(pair.value, pair.index, pair.offset, pair.extent),
              type_map::pair(pair.value, pair.index, pair.offset, pair.extent), pair.name};
    }
    const Named named = names[below(std::size(names))];
    return {layout::named(named.size, named.size), type_map::basic(named.size), named.name};
  }

  RandomDatatype child(int depth) { return draw(below(3) == 0 ? 0 : depth - 1); }

  RandomDatatype contiguous(int depth) {
    const RandomDatatype c = child(depth);
    const std::int64_t n = count(room_for(c));
    return {layout::contiguous(n, c.type), type_map::contiguous(n, c.map), call("contiguous", n, c.text)};
  }

  RandomDatatype vector(int depth) {
    const RandomDatatype c = child(depth);
    const std::int64_t room = room_for(c), length = count(room), n = count(length == 0 ? 6 : room / length);
    const std::int64_t stride = below(4) == 0 ? between(-9, 9) : between(length, length + 4);
    return {layout::vector(n, length, stride, c.type), type_map::vector(n, length, stride, c.map),
            call("vector", n, length, stride, c.text)};
  }

  RandomDatatype hvector(int depth) {
    const RandomDatatype c = child(depth);
    const std::int64_t room = room_for(c), length = count(room), n = count(length == 0 ? 6 : room / length);
    const std::int64_t stride = between(-60, 120);
    return {layout::hvector(n, length, stride, c.type), type_map::hvector(n, length, stride, c.map),
            call("hvector", n, length, stride, c.text)};
  }

  /// Block lengths that fit, and displacements: ascending, arithmetic or anywhere, in units of `unit`.
  void blocks(const RandomDatatype& c, std::int64_t unit, bool is_uniform, List& lengths, List& displacements) {
    const std::int64_t n = below(16) == 0 ? 0 : between(1, 8);
    std::int64_t room = room_for(c), next = between(-4, 4) * unit;
    const std::int64_t kind = below(3), step = between(-5, 8) * unit, common = between(0, 3);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t length = is_uniform ? common : between(0, 3);
      if (length > room) break;
      room -= length;
      lengths.push_back(length);
      displacements.push_back(kind == 2 ? between(-12, 12) * unit : next);
      next += kind == 0 ? (length + between(0, 2)) * unit : step;
    }
  }

  RandomDatatype indexed(int depth) {
    const RandomDatatype c = child(depth);
    List lengths, displacements;
    blocks(c, 1, false, lengths, displacements);
    return {layout::indexed(lengths, displacements, c.type), type_map::indexed(lengths, displacements, c.map),
            call("indexed", lengths, displacements, c.text)};
  }

  RandomDatatype hindexed(int depth) {
    const RandomDatatype c = child(depth);
    List lengths, displacements;
    blocks(c, between(1, 20), false, lengths, displacements);
    return {layout::hindexed(lengths, displacements, c.type), type_map::hindexed(lengths, displacements, c.map),
            call("hindexed", lengths, displacements, c.text)};
  }

  RandomDatatype indexed_block(int depth) {
    const RandomDatatype c = child(depth);
    List lengths, displacements;
    blocks(c, 1, true, lengths, displacements);
    const std::int64_t length = lengths.empty() ? 2 : lengths[0];
    return {layout::indexed_block(length, displacements, c.type), type_map::indexed(lengths, displacements, c.map),
            call("indexed_block", length, displacements, c.text)};
  }

  RandomDatatype hindexed_block(int depth) {
    const RandomDatatype c = child(depth);
    List lengths, displacements;
    blocks(c, between(1, 20), true, lengths, displacements);
    const std::int64_t length = lengths.empty() ? 2 : lengths[0];
    return {layout::hindexed_block(length, displacements, c.type), type_map::hindexed(lengths, displacements, c.map),
            call("hindexed_block", length, displacements, c.text)};
  }

  RandomDatatype structure(int depth) {
    List lengths, displacements;
    std::vector<layout::Datatype> types;
    std::vector<TypeMap> maps;
    std::string texts = "[";
    const std::int64_t fields = below(16) == 0 ? 0 : between(1, 4);
    std::int64_t bytes = most_bytes_, next = between(-8, 8);
    for (std::int64_t i = 0; i < fields; ++i) {
      const RandomDatatype c = child(depth);
      const auto size = static_cast<std::int64_t>(c.map.bytes.size());
      const std::int64_t length = std::min<std::int64_t>(between(0, 3), size == 0 ? 3 : bytes / size);
      bytes -= length * size;
      lengths.push_back(length);
      displacements.push_back(below(4) == 0 ? between(-64, 64) : next);
      next += length * c.map.extent() + between(0, 4);
      types.push_back(c.type);
      maps.push_back(c.map);
      texts += (i == 0 ? "" : ", ") + c.text;
    }
    return {layout::structure(lengths, displacements, types), type_map::structure(lengths, displacements, maps),
            call("struct", lengths, displacements, texts + "]")};
  }

  RandomDatatype subarray(int depth) {
    const RandomDatatype c = child(depth);
    const std::int64_t dimensions = between(1, 4);
    std::int64_t room = room_for(c);
    List sizes, subsizes, starts;
    for (std::int64_t d = 0; d < dimensions; ++d) {
      sizes.push_back(between(1, 5));
      subsizes.push_back(std::min(between(below(16) == 0 ? 0 : 1, sizes[d]), room));
      starts.push_back(between(0, sizes[d] - subsizes[d]));
      if (subsizes[d] > 0) room /= subsizes[d];
    }
    const bool is_fortran = below(2) == 0;
    const auto order = is_fortran ? layout::ArrayOrder::fortran : layout::ArrayOrder::c;
    return {layout::subarray(sizes, subsizes, starts, order, c.type),
            type_map::subarray(sizes, subsizes, starts, is_fortran, c.map),
            call("subarray", sizes, subsizes, starts, std::string(is_fortran ? "fortran" : "c"), c.text)};
  }

  RandomDatatype darray(int depth) {
    using layout::Distribution;
    const RandomDatatype c = child(depth);
    const std::int64_t dimensions = between(1, 3);
    std::int64_t room = room_for(c), processes = 1;
    List sizes, blocks, arguments, grid;
    std::vector<Distribution> distributions;
    std::string names = "[";
    for (std::int64_t d = 0; d < dimensions; ++d) {
      sizes.push_back(std::min(between(1, 6), std::max<std::int64_t>(room, 1)));
      room /= sizes[d];
      const auto distribution = static_cast<Distribution>(below(3));
      distributions.push_back(distribution);
      grid.push_back(distribution == Distribution::none ? 1 : between(1, 3));
      processes *= grid[d];
      const std::int64_t least = (sizes[d] + grid[d] - 1) / grid[d];
      const bool is_default = below(2) == 0;
      switch (distribution) {
        case Distribution::none:
          blocks.push_back(sizes[d]);
          arguments.push_back(layout::default_distribution_argument);
          break;
        case Distribution::block:
          blocks.push_back(is_default ? least : least + between(0, 2));
          arguments.push_back(is_default ? layout::default_distribution_argument : blocks[d]);
          break;
        case Distribution::cyclic:
          blocks.push_back(is_default ? 1 : between(1, 3));
          arguments.push_back(is_default ? layout::default_distribution_argument : blocks[d]);
          break;
      }
      static constexpr const char* words[] = {"none", "block", "cyclic"};
      names += std::string(d == 0 ? "" : ",") + words[static_cast<int>(distribution)];
    }
    if (room == 0) return c;
    const std::int64_t rank = below(processes);
    const bool is_fortran = below(2) == 0;
    const auto order = is_fortran ? layout::ArrayOrder::fortran : layout::ArrayOrder::c;
    return {layout::darray(processes, rank, sizes, distributions, arguments, grid, order, c.type),
            type_map::darray(rank, sizes, blocks, grid, is_fortran, c.map),
            call("darray", processes, rank, sizes, names + "]", arguments, grid,
                 std::string(is_fortran ? "fortran" : "c"), c.text)};
  }

  RandomDatatype resized(int depth) {
    const RandomDatatype c = child(depth);
    const std::int64_t lower = between(-16, 16);
    const std::int64_t extent = below(3) == 0 ? between(-20, 80) : c.map.extent() + between(0, 8);
    return {layout::resized(c.type, lower, extent), type_map::resized(c.map, lower, extent),
            call("resized", c.text, lower, extent)};
  }

  std::mt19937_64 random_;
  std::int64_t most_bytes_;
};

}  // namespace gapless::testing
