// One function per type constructor: draws its arguments, calls MPI, and lays out the type map by the standard's text.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <vector>

#include "support/types/type.hpp"

namespace gapless::test {
namespace {

constexpr MPI_Aint max_span = 1 << 20;

class Builder {
 public:
  Builder(Random& random, std::size_t max_elements, std::span<const Type> basics)
      : random_(random), max_elements_(max_elements), basics_(basics) {}

  Type build(int depth) {
    if (depth == 0) return copy_of_predefined();
    using Make = Type (Builder::*)(int);
    static constexpr std::array<Make, 14> constructors = {
        &Builder::duplicate,     &Builder::contiguous,     &Builder::vector,        &Builder::hvector,
        &Builder::indexed,       &Builder::hindexed,       &Builder::indexed_block, &Builder::hindexed_block,
        &Builder::structure,     &Builder::subarray,       &Builder::distributed,   &Builder::resized,
        &Builder::sparse_blocks, &Builder::reversed_vector};
    const int which = random_.between(0, static_cast<int>(constructors.size()) - 1);
    Type type = (this->*constructors[static_cast<std::size_t>(which)])(depth);
    return acceptable(type) ? std::move(type) : build(depth - 1);
  }

 private:
  bool acceptable(const Type& type) const {
    MPI_Aint reach = std::abs(type.map().extent);
    for (const Element& element : type.map().elements) reach = std::max(reach, std::abs(element.displacement));
    return type.map().elements.size() <= max_elements_ && reach < max_span;
  }

  Type copy_of_predefined() {
    const Type& type = basics_[static_cast<std::size_t>(random_.between(0, static_cast<int>(basics_.size()) - 1))];
    return Type::predefined(type.handle(), type.map(), type.text());
  }

  int small_count() { return random_.one_in(8) ? 0 : random_.between(1, random_.one_in(5) ? 12 : 4); }

  /// Of all blocks of a type alike. MPICH 5.0.2 divides by zero when it packs a struct that holds a type whose blocks
  /// are all empty.
  static int common_block_length(int drawn) {
#ifdef OPEN_MPI
    return drawn;
#else
    return std::max(1, drawn);
#endif
  }

  static void place_block(TypeMap& map, const Type& child, int length, MPI_Aint displacement) {
    for (int k = 0; k < length; ++k) map.place(child.map(), displacement + k * child.map().extent);
  }

  Type duplicate(int depth) {
    Type child = build(depth - 1);
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_dup(child.handle(), &handle));
    return Type(handle, child.map(), "dup(" + child.text() + ")");
  }

  Type contiguous(int depth) {
    Type child = build(depth - 1);
    const int count = small_count();
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_contiguous(count, child.handle(), &handle));
    TypeMap map;
    place_block(map, child, count, 0);
    return Type(handle, map, "contiguous(" + std::to_string(count) + "," + child.text() + ")");
  }

  Type strided(const Type& child, int count, int length, int stride) {
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_vector(count, length, stride, child.handle(), &handle));
    TypeMap map;
    for (int block = 0; block < count; ++block)
      place_block(map, child, length, static_cast<MPI_Aint>(block) * stride * child.map().extent);
    std::ostringstream text;
    text << "vector(" << count << "," << length << "," << stride << "," << child.text() << ")";
    return Type(handle, map, text.str());
  }

  Type vector(int depth) {
    const Type child = build(depth - 1);
    const int length = common_block_length(small_count());
    return strided(child, small_count(), length, length + random_.between(0, 5));
  }

  /// Negative, zero and overlapping strides.
  Type reversed_vector(int depth) {
    const Type child = build(depth - 1);
    const int length = common_block_length(small_count());
    return strided(child, small_count(), length, random_.one_in(3) ? random_.between(-6, 2) : -length);
  }

  Type hvector(int depth) {
    const Type child = build(depth - 1);
    const int count = small_count();
    const int length = common_block_length(small_count());
    const MPI_Aint stride = length * child.map().extent + random_.between(-8, 40);
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_create_hvector(count, length, stride, child.handle(), &handle));
    TypeMap map;
    for (int block = 0; block < count; ++block) place_block(map, child, length, block * stride);
    std::ostringstream text;
    text << "hvector(" << count << "," << length << "," << stride << "," << child.text() << ")";
    return Type(handle, map, text.str());
  }

  /// Blocks at ascending places most of the time, so that most types can be received into; any order otherwise.
  struct Blocks {
    std::vector<int> lengths;
    std::vector<int> displacements;
    std::string text;
  };
  Blocks draw_blocks(int count, bool equal_lengths) {
    Blocks blocks;
    int next = random_.between(-3, 3);
    const int length = common_block_length(random_.between(0, 3));
    std::ostringstream text;
    for (int block = 0; block < count; ++block) {
      blocks.lengths.push_back(equal_lengths ? length : random_.between(0, 4));
      blocks.displacements.push_back(random_.one_in(40) ? random_.between(-9, 9) : next);
      next += blocks.lengths.back() + (random_.one_in(2) ? 0 : random_.between(0, 4));
      text << blocks.lengths.back() << "@" << blocks.displacements.back() << " ";
    }
    if (random_.one_in(3)) std::reverse(blocks.displacements.begin(), blocks.displacements.end());
    blocks.text =
        "[" + text.str() + (count && blocks.displacements.back() < blocks.displacements[0] ? "reversed" : "") + "]";
    return blocks;
  }

  Type indexed(int depth) {
    const Type child = build(depth - 1);
    const int count = small_count();
    const Blocks blocks = draw_blocks(count, false);
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS,
              MPI_Type_indexed(count, blocks.lengths.data(), blocks.displacements.data(), child.handle(), &handle));
    TypeMap map;
    for (std::size_t b = 0; b < blocks.lengths.size(); ++b)
      place_block(map, child, blocks.lengths[b], blocks.displacements[b] * child.map().extent);
    return Type(handle, map, "indexed(" + blocks.text + "," + child.text() + ")");
  }

  std::vector<MPI_Aint> to_bytes(const Blocks& blocks, const Type& child) {
    std::vector<MPI_Aint> bytes;
    const MPI_Aint shift = random_.between(0, 7);
    for (int displacement : blocks.displacements) bytes.push_back(displacement * child.map().extent + shift);
    return bytes;
  }

  Type hindexed(int depth) {
    const Type child = build(depth - 1);
    const int count = small_count();
    const Blocks blocks = draw_blocks(count, false);
    const std::vector<MPI_Aint> bytes = to_bytes(blocks, child);
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS,
              MPI_Type_create_hindexed(count, blocks.lengths.data(), bytes.data(), child.handle(), &handle));
    TypeMap map;
    for (std::size_t b = 0; b < bytes.size(); ++b) place_block(map, child, blocks.lengths[b], bytes[b]);
    return Type(handle, map, "hindexed(" + blocks.text + "," + child.text() + ")");
  }

  Type indexed_block(int depth) {
    const Type child = build(depth - 1);
    const int count = small_count();
    const Blocks blocks = draw_blocks(count, true);
    const int length = count ? blocks.lengths[0] : 1;
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS,
              MPI_Type_create_indexed_block(count, length, blocks.displacements.data(), child.handle(), &handle));
    TypeMap map;
    for (int displacement : blocks.displacements) place_block(map, child, length, displacement * child.map().extent);
    return Type(handle, map, "indexed_block(" + blocks.text + "," + child.text() + ")");
  }

  Type hindexed_block(int depth) {
    const Type child = build(depth - 1);
    const int count = small_count();
    const Blocks blocks = draw_blocks(count, true);
    const std::vector<MPI_Aint> bytes = to_bytes(blocks, child);
    const int length = count ? blocks.lengths[0] : 1;
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_create_hindexed_block(count, length, bytes.data(), child.handle(), &handle));
    TypeMap map;
    for (MPI_Aint displacement : bytes) place_block(map, child, length, displacement);
    return Type(handle, map, "hindexed_block(" + blocks.text + "," + child.text() + ")");
  }

  /// Many blocks of one element at irregular places: what index lists of meshes and particles look like.
  Type sparse_blocks(int) {
    const Type child = copy_of_predefined();
    const int count = random_.between(8, 48);
    std::vector<int> displacements;
    int next = 0;
    for (int block = 0; block < count; ++block) {
      displacements.push_back(next);
      next += random_.between(1, random_.one_in(4) ? 30 : 3);
    }
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_create_indexed_block(count, 1, displacements.data(), child.handle(), &handle));
    TypeMap map;
    for (int displacement : displacements) place_block(map, child, 1, displacement * child.map().extent);
    return Type(handle, map, "sparse_blocks(" + std::to_string(count) + "," + child.text() + ")");
  }

  Type structure(int depth) {
    const int count = random_.between(0, 3);
    std::vector<Type> children;
    std::vector<MPI_Datatype> handles;
    std::vector<int> lengths;
    std::vector<MPI_Aint> displacements;
    TypeMap map;
    std::string text = "struct(";
    MPI_Aint next = random_.between(-16, 16);
    for (int field = 0; field < count; ++field) {
      children.push_back(build(random_.between(0, depth - 1)));
      const Type& child = children.back();
      handles.push_back(child.handle());
      lengths.push_back(random_.between(0, 3));
      displacements.push_back(next - std::min<MPI_Aint>(child.map().lower_bound, 0));
      place_block(map, child, lengths.back(), displacements.back());
      text += std::to_string(lengths.back()) + "*" + child.text() + "@" + std::to_string(displacements.back()) + " ";
      next = displacements.back() + lengths.back() * std::max<MPI_Aint>(child.map().extent, 0) + random_.between(0, 9);
    }
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS,
              MPI_Type_create_struct(count, lengths.data(), displacements.data(), handles.data(), &handle));
    return Type(handle, map, text + ")");
  }

  /// Places `child` at the chosen indices of each dimension, in array order.
  static TypeMap select(const Type& child, int order, const std::vector<int>& sizes,
                        const std::vector<std::vector<int>>& chosen) {
    TypeMap map;
    const auto dimensions = static_cast<int>(sizes.size());
    const std::function<void(int, MPI_Aint, MPI_Aint)> descend = [&](int level, MPI_Aint index, MPI_Aint stride) {
      if (level == dimensions) return map.place(child.map(), index * child.map().extent);
      const auto dimension = static_cast<std::size_t>(order == MPI_ORDER_C ? level : dimensions - 1 - level);
      stride /= sizes[dimension];
      for (int k : chosen[dimension]) descend(level + 1, index + k * stride, stride);
    };
    MPI_Aint total = 1;
    for (int size : sizes) total *= size;
    descend(0, 0, total);
    return map;
  }

  Type subarray(int depth) {
    const Type child = build(depth - 1);
    const int dimensions = random_.between(1, 4);
    const int order = random_.one_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    std::vector<int> sizes, subsizes, starts;
    std::vector<std::vector<int>> chosen;
    std::ostringstream text;
    text << "subarray(" << (order == MPI_ORDER_C ? "C " : "Fortran ");
    for (int d = 0; d < dimensions; ++d) {
      sizes.push_back(random_.between(1, 5));
      subsizes.push_back(random_.one_in(3) ? 1 : random_.between(1, sizes.back()));
      starts.push_back(random_.between(0, sizes.back() - subsizes.back()));
      chosen.emplace_back();
      for (int k = 0; k < subsizes.back(); ++k) chosen.back().push_back(starts.back() + k);
      text << starts.back() << "+" << subsizes.back() << "/" << sizes.back() << " ";
    }
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_create_subarray(dimensions, sizes.data(), subsizes.data(), starts.data(), order,
                                                    child.handle(), &handle));
    text << "," << child.text() << ")";
    return Type(handle, select(child, order, sizes, chosen), text.str());
  }

  Type distributed(int depth) {
    Type child = build(depth - 1);
    if (child.map().elements.empty()) return child;  // Open MPI refuses to distribute empty types
    const int dimensions = random_.between(1, 3);
    const int order = random_.one_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    std::vector<int> sizes, distributions, arguments, processes;
    int ranks = 1;
    for (int d = 0; d < dimensions; ++d) {
      static constexpr std::array<int, 3> kinds = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
      sizes.push_back(random_.between(1, 7));
      distributions.push_back(kinds[static_cast<std::size_t>(random_.between(0, 2))]);
      processes.push_back(distributions.back() == MPI_DISTRIBUTE_NONE ? 1 : random_.between(1, 3));
      const bool cyclic = distributions.back() == MPI_DISTRIBUTE_CYCLIC && random_.one_in(2);
      arguments.push_back(cyclic ? random_.between(1, 3) : MPI_DISTRIBUTE_DFLT_DARG);
      ranks *= processes.back();
    }
    const int rank = random_.between(0, ranks - 1);
    std::vector<std::vector<int>> chosen(static_cast<std::size_t>(dimensions));
    std::ostringstream text;
    int rest = rank;
    for (int d = dimensions - 1; d >= 0; --d) {  // the process grid is always in C order
      const auto k = static_cast<std::size_t>(d);
      const int coordinate = rest % processes[k];
      rest /= processes[k];
      const bool cyclic = distributions[k] == MPI_DISTRIBUTE_CYCLIC;
      const int block = distributions[k] == MPI_DISTRIBUTE_NONE    ? sizes[k]
                        : arguments[k] != MPI_DISTRIBUTE_DFLT_DARG ? arguments[k]
                        : cyclic                                   ? 1
                                                                   : (sizes[k] + processes[k] - 1) / processes[k];
      for (int index = 0; index < sizes[k]; ++index)
        if (index / block % processes[k] == coordinate) chosen[k].push_back(index);
      text << (cyclic ? "cyclic" : "block") << block << ":" << sizes[k] << "/" << processes[k] << " ";
    }
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_create_darray(ranks, rank, dimensions, sizes.data(), distributions.data(),
                                                  arguments.data(), processes.data(), order, child.handle(), &handle));
    return Type(handle, select(child, order, sizes, chosen),
                "darray(rank " + std::to_string(rank) + (order == MPI_ORDER_C ? " C " : " Fortran ") + text.str() +
                    "," + child.text() + ")");
  }

  Type resized(int depth) {
    const Type child = build(depth - 1);
    const MPI_Aint lower = child.map().lower_bound + (random_.one_in(2) ? 0 : random_.between(-12, 12));
    const MPI_Aint extent = std::max<MPI_Aint>(child.map().extent + random_.between(random_.one_in(4) ? -8 : 0, 24), 0);
    MPI_Datatype handle;
    EXPECT_EQ(MPI_SUCCESS, MPI_Type_create_resized(child.handle(), lower, extent, &handle));
    return Type(handle, child.map(),
                "resized(" + std::to_string(lower) + "," + std::to_string(extent) + "," + child.text() + ")");
  }

  Random& random_;
  std::size_t max_elements_;
  std::span<const Type> basics_;
};

}  // namespace

Type random_type(Random& random, int depth, std::size_t max_elements, std::span<const Type> basics) {
  Type type = Builder(random, max_elements, basics).build(depth);
  if (type.map().elements.size() <= 1 && depth > 0 && !random.one_in(4))
    return random_type(random, depth, max_elements, basics);
  type.commit();
  return type;
}

}  // namespace gapless::test
