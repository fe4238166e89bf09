// Two kinds of types. Irregular: any nest of constructors, as in random_types. Regular: many equal elements in the
// shapes of vectors and index lists, which reach any number of bytes exactly, those around the libraries' limits too.
#include "sides/sides.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace gapless::test::differential {
namespace {

template <typename Value>
Type basic(MPI_Datatype handle, const char* name) {
  return Type::predefined(handle, {{{0, sizeof(Value), handle}}}, name);
}

/// Elements of more than 8 bytes, and the pairs that support/types/type.cpp leaves out.
std::span<const Type> wide_types() {
  static const std::vector<Type>* types = [] {
    struct Pair {
      long double value;
      int index;
    };
    auto* all = new std::vector<Type>;
    all->push_back(basic<long double>(MPI_LONG_DOUBLE, "LONG_DOUBLE"));
    all->push_back(basic<double[2]>(MPI_C_DOUBLE_COMPLEX, "C_DOUBLE_COMPLEX"));
    all->push_back(basic<long double[2]>(MPI_C_LONG_DOUBLE_COMPLEX, "C_LONG_DOUBLE_COMPLEX"));
    all->push_back(basic<float[2]>(MPI_C_FLOAT_COMPLEX, "C_FLOAT_COMPLEX"));
    const TypeMap map{{{0, sizeof(long double), MPI_LONG_DOUBLE}, {offsetof(Pair, index), sizeof(int), MPI_INT}}};
    all->push_back(Type::predefined(MPI_LONG_DOUBLE_INT, map, "LONG_DOUBLE_INT"));
    return all;
  }();
  return *types;
}

std::span<const Type> draw_basics(Random& random) { return random.one_in(5) ? wide_types() : predefined_types(); }

Type copy_of(const Type& type) { return Type::predefined(type.handle(), type.map(), type.text()); }

const Type& any_of(Random& random, std::span<const Type> types) {
  return types[static_cast<std::size_t>(random.between(0, static_cast<int>(types.size()) - 1))];
}

/// Where MPI libraries change their way: eager limits, sizes of cells, fragments and pieces.
constexpr std::array limits = {64, 1024, 4000, 4096, 8000, 8168, 8192, 16384, 32768, 65536, 131072};

int draw_bytes(Random& random) {
  const int kind = random.between(0, 39);
  if (kind < 22) return random.between(1, 256);
  if (kind < 30) return random.between(257, 8192);
  if (kind < 39) return limits[static_cast<std::size_t>(random.between(0, limits.size() - 1))] + random.between(-9, 9);
  return random.between(8192, 300000);
}

Type committed(MPI_Datatype handle, TypeMap map, std::string text) {
  Type type(handle, std::move(map), std::move(text));
  type.commit();
  return type;
}

std::string text_of(const char* constructor, std::initializer_list<MPI_Aint> numbers, const Type& child) {
  std::string text = std::string(constructor) + "(";
  for (const MPI_Aint number : numbers) text += std::to_string(number) + ",";
  return text + child.text() + ")";
}

void place_block(TypeMap& map, const Type& child, int length, MPI_Aint displacement) {
  for (int k = 0; k < length; ++k) map.place(child.map(), displacement + k * child.map().extent);
}

/// Blocks of `length` children, the next `extent` bytes further, in either direction.
Type spaced(const Type& child, int length, MPI_Aint extent) {
  MPI_Datatype block, resized;
  MPI_Type_contiguous(length, child.handle(), &block);
  MPI_Type_create_resized(block, 0, extent, &resized);
  MPI_Type_free(&block);
  TypeMap map;
  place_block(map, child, length, 0);
  return committed(resized, std::move(map), text_of("spaced", {length, extent}, child));
}

Type strided(const Type& child, int count, int length, int stride) {
  MPI_Datatype handle;
  MPI_Type_vector(count, length, stride, child.handle(), &handle);
  TypeMap map;
  for (int block = 0; block < count; ++block)
    place_block(map, child, length, static_cast<MPI_Aint>(block) * stride * child.map().extent);
  return committed(handle, std::move(map), text_of("vector", {count, length, stride}, child));
}

Type scattered(Random& random, const Type& child, int count) {
  std::vector<int> displacements;
  int next = random.between(-4, 4);
  for (int block = 0; block < count; ++block) {
    displacements.push_back(next);
    next += random.between(1, 3);
  }
  if (random.one_in(3)) std::reverse(displacements.begin(), displacements.end());
  MPI_Datatype handle;
  MPI_Type_create_indexed_block(count, 1, displacements.data(), child.handle(), &handle);
  TypeMap map;
  for (const int displacement : displacements) place_block(map, child, 1, displacement * child.map().extent);
  return committed(handle, std::move(map), text_of("indexed_block", {count}, child));
}

/// Exactly `elements` of `child`, at places that do not overlap.
Side regular_side(Random& random, const Type& child, int elements) {
  constexpr int longest_list = 4096;
  const MPI_Aint extent = child.map().extent;
  int length = random.between(1, 8);
  while (elements % length != 0) --length;
  const int blocks = elements / length;
  const int gap = random.between(1, 5);
  if (elements == 0) return Side(spaced(child, 1, 2 * extent), 0);
  switch (random.between(0, 7)) {
    case 0:
      return Side(copy_of(child), elements);
    case 1:
      return Side(spaced(child, 1, extent + random.between(1, 24)), elements);
    case 2:
      return Side(spaced(child, length, length * extent + random.between(0, 24)), blocks);
    case 3:
      return Side(spaced(child, length, -(length * extent + random.between(0, 24))), blocks);
    case 4:
      return Side(strided(child, blocks, length, length + gap), 1);
    case 5:
      return Side(strided(child, blocks, length, -(length + gap)), 1);
    case 6:
      return elements <= longest_list ? Side(scattered(random, child, elements), 1)
                                      : Side(strided(child, elements, 1, 2), 1);
    default:
      return Side(strided(child, 1, length, length), blocks);
  }
}

/// By how much a message is too long, or a receive longer than its message.
int draw_excess(Random& random, int elements) {
  static constexpr std::array far = {1, 1, 2, 3, 7, 64, 1000, 20000};
  return random.one_in(4) ? std::max(elements, 1) : far[static_cast<std::size_t>(random.between(0, far.size() - 1))];
}

MPI_Datatype byte_or_packed(Random& random) { return random.one_in(2) ? MPI_BYTE : MPI_PACKED; }

Pair regular_pair(Random& random, Fit fit) {
  const Type& child = any_of(random, draw_basics(random));
  const auto size = static_cast<int>(child.map().size());
  const int elements = random.one_in(30) ? 0 : std::max(draw_bytes(random) / size, 1);
  if (fit == Fit::equal) return {regular_side(random, child, elements), regular_side(random, child, elements)};
  const int excess = draw_excess(random, elements);
  const int more = std::min(elements + excess, std::max(elements, 400000 / size));
  if (fit == Fit::shorter) return {regular_side(random, child, elements), regular_side(random, child, more)};
  Side in = regular_side(random, child, elements);
  // Too long by whole elements, or by any number of bytes.
  if (random.one_in(2)) return {regular_side(random, child, more), std::move(in)};
  const std::size_t bytes = in.bytes + static_cast<std::size_t>(more - elements);
  return {plain_bytes(bytes, byte_or_packed(random)), std::move(in)};
}

Side irregular_side(Random& random, bool receives) {
  const auto basics = draw_basics(random);
  for (;;) {
    Type type = random_type(random, random.between(1, 3), random.one_in(3) ? 200 : 24, basics);
    const auto size = static_cast<int>(type.map().size());
    const int count = size == 0 ? random.between(0, 3) : std::clamp(draw_bytes(random) / size, 1, 1 + 8192 / size);
    Side side(std::move(type), count);
    if (!receives || !overlaps(side)) return side;
  }
}

/// The same signature `count` times, one after another or scattered.
Side counterpart_of_one(Random& random, const Type& type, int count) {
  return Side(random.one_in(2) ? contiguous_counterpart(type, 1) : scattered_counterpart(random, type, 1), count);
}

Pair irregular_pair(Random& random, Fit fit) {
  const bool to_irregular = random.one_in(2);
  Side side = irregular_side(random, to_irregular);
  int other = side.count;
  const bool other_is_more = to_irregular == (fit == Fit::longer);
  if (fit != Fit::equal) {
    const int difference = random.one_in(2) ? 1 : random.between(1, std::max(side.count, 1));
    other = other_is_more ? side.count + difference : std::max(side.count - difference, 0);
  }
  Side counter = counterpart_of_one(random, side.type, other);
  if (to_irregular) return {std::move(counter), std::move(side)};
  return {std::move(side), std::move(counter)};
}

Side any_side(Random& random, bool receives) {
  return random.one_in(2) ? irregular_side(random, receives) : std::move(regular_pair(random, Fit::equal).in);
}

Pair unrelated_pair(Random& random, bool longer) {
  for (;;) {
    Pair pair{any_side(random, false), any_side(random, true)};
    if ((pair.out.bytes > pair.in.bytes) == longer) return pair;
  }
}

Pair pair_with_end_inside_element(Random& random) {
  Side in = any_side(random, true);
  const auto bytes = static_cast<int>(in.bytes);
  int length = random.one_in(2) ? random.between(0, bytes) : bytes - random.between(1, 9);
  length = std::clamp(length, 0, std::max(bytes - 1, 0));
  return {plain_bytes(static_cast<std::size_t>(length), byte_or_packed(random)), std::move(in)};
}

}  // namespace

Side plain_bytes(std::size_t bytes, MPI_Datatype type) {
  Side side(Type::predefined(type, {{{0, 1, type}}}, type == MPI_PACKED ? "PACKED" : "BYTE"), 0);
  side.count = static_cast<int>(bytes);
  side.bytes = bytes;
  side.elements = {{0, bytes, type}};
  return side;
}

Pair random_pair(Random& random, Fit fit) {
  if (fit == Fit::inside_element) return pair_with_end_inside_element(random);
  if (fit == Fit::longer_of_other_type || fit == Fit::not_longer_of_other_type)
    return unrelated_pair(random, fit == Fit::longer_of_other_type);
  Pair pair = random.one_in(3) ? irregular_pair(random, fit) : regular_pair(random, fit);
  // What is packed matches everything: one end in six is a plain run of bytes.
  if (random.one_in(6) && fit != Fit::longer) {
    if (random.one_in(2))
      pair.out = plain_bytes(pair.out.bytes, MPI_PACKED);
    else
      pair.in = plain_bytes(pair.in.bytes, MPI_PACKED);
  }
  return pair;
}

Side random_receiving_side(Random& random) { return any_side(random, true); }

}  // namespace gapless::test::differential
