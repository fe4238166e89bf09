// The library's own description of a datatype (MPI 5.0, 5.1.13), rebuilt with the constructors of
// layout/datatype/datatype.hpp.
//
// Lower bound and extent come from the library at every level, for libraries differ in how they pad a struct. Size and
// true bounds are computed here and asked of the library; a type of which the two disagree is opaque, so that a
// misunderstanding costs speed and never data. The library's true bounds may be wider than the named bytes: MPICH
// counts the empty blocks of a struct, and lets some darrays begin at 0.
#include "mpi/datatypes/decode.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <exception>
#include <new>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mpi/datatypes/contents.hpp"
#include "mpi/table/library_traits.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

using layout::ArrayOrder;
using layout::Datatype;
using layout::Distribution;
using layout::Elements;
using layout::ElementsPointer;
using layout::Numbers;
using layout::Offset;

struct Bounds {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
};

Bounds bounds_of(MPI_Datatype handle) {
  Bounds bounds;
  check(native.Type_size_x(handle, &bounds.size));
  check(native.Type_get_extent_x(handle, &bounds.lower, &bounds.extent));
  check(native.Type_get_true_extent_x(handle, &bounds.true_lower, &bounds.true_extent));
  if (bounds.size < 0) throw NotOurs("size unknown");
  return bounds;
}

/// A value and behind it an index, which ends where the type's bytes end.
Datatype pair_type(Offset value_size, Offset index_size, const Bounds& bounds) {
  return layout::pair(value_size, index_size, bounds.true_extent - index_size, bounds.extent);
}

/// Bytes of the value of a named pair with an int; 0 if the type is none. MPI_2INT is two ints without a gap.
Offset value_size_of_pair(MPI_Datatype handle) {
  if (handle == MPI_FLOAT_INT) return sizeof(float);
  if (handle == MPI_DOUBLE_INT) return sizeof(double);
  if (handle == MPI_LONG_INT) return sizeof(long);
  if (handle == MPI_SHORT_INT) return sizeof(short);
  if (handle == MPI_LONG_DOUBLE_INT) return sizeof(long double);
  return handle == MPI_2INT ? sizeof(int) : 0;
}

Datatype named_type(MPI_Datatype handle, const Bounds& bounds) {
  if (const Offset value_size = value_size_of_pair(handle)) return pair_type(value_size, sizeof(int), bounds);
  if (bounds.size != bounds.true_extent || bounds.true_lower != 0) throw NotOurs("a named type with gaps");
  return layout::named(bounds.size, bounds.extent);
}

std::vector<Offset> widened(std::span<const int> values) { return {values.begin(), values.end()}; }

ArrayOrder order_of(Offset value) {
  if (value == MPI_ORDER_C) return ArrayOrder::c;
  if (value == MPI_ORDER_FORTRAN) return ArrayOrder::fortran;
  throw NotOurs("an unknown array order");
}

Datatype subarray_type(const Contents& contents, const Datatype& child) {
  const auto dimensions = static_cast<std::size_t>(contents.integer(0));
  const std::size_t sizes = contents.is_large() ? 0 : 1;
  const std::size_t order = contents.is_large() ? 1 : 1 + 3 * dimensions;
  return layout::subarray(contents.list(sizes, dimensions), contents.list(sizes + dimensions, dimensions),
                          contents.list(sizes + 2 * dimensions, dimensions), order_of(contents.integer(order)), child);
}

Datatype darray_type(const Contents& contents, const Datatype& child) {
  const auto dimensions = static_cast<std::size_t>(contents.integer(2));
  // The large-count form moves the global sizes to the large counts, and what follows them up.
  const auto global_sizes = contents.list(contents.is_large() ? 0 : 3, dimensions);
  const std::size_t rest = contents.is_large() ? 3 : 3 + dimensions;
  std::vector<Distribution> distributions;
  for (const int value : contents.integers(rest, dimensions)) {
    if (value == MPI_DISTRIBUTE_NONE)
      distributions.push_back(Distribution::none);
    else if (value == MPI_DISTRIBUTE_BLOCK)
      distributions.push_back(Distribution::block);
    else if (value == MPI_DISTRIBUTE_CYCLIC)
      distributions.push_back(Distribution::cyclic);
    else
      throw NotOurs("an unknown distribution");
  }
  auto arguments = widened(contents.integers(rest + dimensions, dimensions));
  for (Offset& argument : arguments) {
    if (argument == MPI_DISTRIBUTE_DFLT_DARG) argument = layout::default_distribution_argument;
  }
  const auto process_sizes = widened(contents.integers(rest + 2 * dimensions, dimensions));
  return layout::darray(contents.integer(0), contents.integer(1), global_sizes, distributions, arguments, process_sizes,
                        order_of(contents.integer(rest + 3 * dimensions)), child);
}

// The datatypes that a constructor was given. Equal ones are kept once (`kinds`), and `kind_of` says which one each
// child is.
class Children {
 public:
  void reserve(std::size_t count) { kind_of_.reserve(count); }
  void add(const Decoded& child) {
    // Mostly the same few types take turns, and are found here without the map.
    auto& place = places_[(reinterpret_cast<std::uintptr_t>(&child) >> 4) % places_.size()];
    if (place >= kinds_.size() || kinds_[place] != &child.datatype) {
      const auto [kind, is_new] = kind_of_child_.try_emplace(&child.datatype, kinds_.size());
      if (is_new) {
        kinds_.push_back(&child.datatype);
        decoded_.push_back(&child);
      }
      place = kind->second;
    }
    kind_of_.push_back(static_cast<std::uint32_t>(place));
  }

  std::size_t size() const noexcept { return kind_of_.size(); }
  const Decoded& operator[](std::size_t i) const noexcept { return *decoded_[kind_of_[i]]; }
  std::span<const Decoded* const> all() const noexcept { return decoded_; }
  /// The different datatypes, and for each child the number of its own among them.
  std::span<const Datatype* const> kinds() const noexcept { return kinds_; }
  std::span<const std::uint32_t> kind_of() const noexcept { return kind_of_; }

 private:
  std::vector<const Datatype*> kinds_;
  std::vector<const Decoded*> decoded_;
  std::vector<std::uint32_t> kind_of_;
  std::unordered_map<const Datatype*, std::size_t> kind_of_child_;
  std::array<std::size_t, 16> places_{};
};

Datatype construct(int combiner, const Contents& contents, const Children& children, const Bounds& bounds) {
  if (combiner == value_index) return pair_type(children[0].datatype.size(), children[1].datatype.size(), bounds);
  if (combiner == MPI_COMBINER_STRUCT || combiner == struct_integer) {
    const std::size_t n = contents.count(0);
    if (n != children.size()) throw NotOurs("a struct with other than one type per block");
    return layout::structure(contents.numbers(1, n), contents.numbers(1 + n, n), children.kinds(), children.kind_of());
  }
  if (children.size() != 1) throw NotOurs("an unknown constructor");
  const Datatype& child = children[0].datatype;
  // if, not switch: combiners that a header lacks have made-up values above.
  if (combiner == MPI_COMBINER_DUP) return child;
  if (combiner == MPI_COMBINER_CONTIGUOUS) return layout::contiguous(contents.number(0), child);
  if (combiner == MPI_COMBINER_VECTOR) {
    return layout::vector(contents.number(0), contents.number(1), contents.number(2), child);
  }
  if (combiner == MPI_COMBINER_HVECTOR || combiner == hvector_integer) {
    return layout::hvector(contents.number(0), contents.number(1), contents.number(2), child);
  }
  if (combiner == MPI_COMBINER_RESIZED) return layout::resized(child, contents.number(0), contents.number(1));
  if (combiner == MPI_COMBINER_SUBARRAY) return subarray_type(contents, child);
  if (combiner == MPI_COMBINER_DARRAY) return darray_type(contents, child);
  const std::size_t n = contents.count(0);
  if (combiner == MPI_COMBINER_INDEXED)
    return layout::indexed(contents.numbers(1, n), contents.numbers(1 + n, n), child);
  if (combiner == MPI_COMBINER_HINDEXED || combiner == hindexed_integer) {
    return layout::hindexed(contents.numbers(1, n), contents.numbers(1 + n, n), child);
  }
  if (combiner == MPI_COMBINER_INDEXED_BLOCK) {
    return layout::indexed_block(contents.number(1), contents.numbers(2, n), child);
  }
  if (combiner == MPI_COMBINER_HINDEXED_BLOCK) {
    return layout::hindexed_block(contents.number(1), contents.numbers(2, n), child);
  }
  throw NotOurs("an unknown constructor");
}

Datatype with_library_bounds(Datatype datatype, const Bounds& bounds) {
  if (datatype.size() != bounds.size) throw NotOurs("the library says another size");
  if (bounds.size != 0 && (datatype.true_lower_bound < bounds.true_lower ||
                           datatype.true_upper_bound > bounds.true_lower + bounds.true_extent)) {
    throw NotOurs("the library says other true bounds");
  }
  datatype.lower_bound = bounds.lower;
  datatype.upper_bound = bounds.lower + bounds.extent;
  return datatype;
}

// MPICH's pieces hold a multiple of 16 bytes.
constexpr Offset widest_aligned_element = 16;

/// The larger part of a pair, which may have a gap between the two.
Offset widest_element_of_named(MPI_Datatype handle, Offset size) {
  const Offset value_size = value_size_of_pair(handle);
  return value_size == 0 ? size : std::max<Offset>(value_size, sizeof(int));
}

Offset aligned_element_of_named(const Datatype& type) {
  const bool is_number = type.layout->is_contiguous() && std::has_single_bit(static_cast<std::uint64_t>(type.size()));
  return is_number && type.size() <= widest_aligned_element ? type.size() : 0;
}

bool is_of_long_doubles(MPI_Datatype named) noexcept {
#if !defined(GAPLESS_VARIANT_OPENMPI)  // which moves padding too
  if (named == MPI_CXX_LONG_DOUBLE_COMPLEX) return true;
#endif
  return named == MPI_LONG_DOUBLE || named == MPI_C_LONG_DOUBLE_COMPLEX || named == MPI_LONG_DOUBLE_INT;
}

bool have_long_doubles(const Children& children) {
  return std::ranges::any_of(children.all(), [](const Decoded* child) { return child->has_long_doubles; });
}

Offset widest_element_of(const Children& children) {
  Offset widest = 0;
  for (const Decoded* child : children.all()) widest = std::max(widest, child->widest_element);
  return widest;
}

// Elements are needed only to diagnose a message that ends inside of one, so of longer structs none are kept.
constexpr std::size_t most_fields_with_elements = 4096;

ElementsPointer elements_of(int combiner, const Contents& contents, const Children& children, const Bounds& bounds) {
  if (children.size() == 0) return nullptr;
  // To MPICH, which alone asks, a pair is one basic element.
  if (combiner == value_index) return std::make_shared<const Elements>(bounds.size);
  const ElementsPointer& first = children[0].elements;
  if (children.size() == 1) return first;
  const auto is_same = [&](const Decoded* child) {
    if (child->elements == nullptr || first == nullptr) return false;
    return child->elements == first ||
           (child->elements->is_basic() && first->is_basic() && child->elements->size() == first->size());
  };
  if (std::ranges::all_of(children.all(), is_same)) return first;
  if (children.size() > most_fields_with_elements) return nullptr;
  std::vector<Elements::Field> fields;
  const Numbers block_lengths = contents.numbers(1, children.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (children[i].elements == nullptr) return nullptr;
    // A child may be many repetitions of what its elements are.
    fields.push_back({children[i].elements, block_lengths[i] * children[i].datatype.size()});
  }
  return std::make_shared<const Elements>(std::move(fields));
}

Offset aligned_element_of_fields(Numbers block_lengths, const Children& fields) {
  Offset widest = 1, packed = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Offset bytes = block_lengths[i] * fields[i].datatype.size();
    if (bytes == 0) continue;
    const Offset element = fields[i].aligned_element;
    if (element == 0 || (packed & (element - 1)) != 0) return 0;  // elements are powers of two
    widest = std::max(widest, element);
    packed += bytes;
  }
  return packed % widest == 0 ? widest : 0;
}

Offset aligned_element_of(int combiner, const Contents& contents, const Children& children) {
  static constexpr Offset once[] = {1, 1};
  if (combiner == value_index) return aligned_element_of_fields(Numbers(once), children);
  if (children.size() == 1) return children[0].aligned_element;
  return aligned_element_of_fields(contents.numbers(1, children.size()), children);
}

/// Would the library lose packed bytes that it receives into such datatypes?
bool is_miscounted(const layout::Layout& fields, const Children& children) noexcept {
  return library_miscounts_shifted_structs && children.size() > 1 && fields.is_contiguous() && fields.base != 0;
}

/// Estimates the length of a datatype's description. Looks at no more than 16 types, and does not read long lists.
class EntryCounter {
 public:
  static constexpr int most_visits = 16;

  DescriptionLength count(MPI_Datatype handle) {
    const TypeEnvelope envelope = type_envelope_of(handle);
    if (is_predefined_combiner(envelope.combiner)) return {};
    ++visits_;
    const MPI_Count numbers = envelope.integers + envelope.addresses + envelope.large_counts;
    if (numbers > long_list)
      return {static_cast<double>(entries_of(envelope.combiner, numbers, envelope.datatypes)), 1};
    const Contents contents(handle, envelope);
    return with_children(contents.types());
  }

 private:
  /// Children that are not looked at are taken to be like those that are. Of a type that is no sibling nobody knows
  /// that it is the same: Open MPI uses the address of a handle again once that is freed.
  DescriptionLength with_children(std::span<const MPI_Datatype> types) {
    double entries = static_cast<double>(types.size()), below = 0;
    int different = 0, seen = 0;
    for (auto child = types.begin(); child != types.end(); ++child) {
      if (std::find(types.begin(), child, *child) != child) continue;
      ++different;
      if (visits_ >= most_visits) continue;
      const DescriptionLength length = count(*child);
      ++seen;
      entries = std::max(entries, length.entries);
      below += length.types;
    }
    if (seen > 0) below *= static_cast<double>(different) / seen;
    return {std::max(entries, below), 1 + below};
  }

  static constexpr MPI_Count long_list = 64;

  static MPI_Count entries_of(int combiner, MPI_Count numbers, MPI_Count fields) noexcept {
    if (fields > 1) return fields;
    const bool is_uniform = combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    return is_uniform ? numbers : numbers / 2;
  }

  int visits_ = 0;
};

/// Decodes a type and those it is made of. A type that occurs often is decoded once if the library gives it one handle
/// each time. Open MPI does not always do so, hence the limit on the number of types.
class Decoder {
 public:
  const Decoded& decode(MPI_Datatype handle) {
    const auto [place, is_new] = known_.try_emplace(number_of(handle));
    Decoded& decoded = place->second;
    if (!is_new) return decoded;
    if (++depth_ > deepest) throw NotOurs("nested too deeply for the stack of a thread");
    if (known_.size() > most_types) throw NotOurs("too many types to decode each by itself");
    decoded = decode_new(handle);
    --depth_;
    return decoded;
  }

 private:
  static constexpr int deepest = 100;
  static constexpr std::size_t most_types = std::size_t{1} << 16;
  static constexpr std::size_t few = 32;

  /// Of a child: mostly the same few types take turns in the fields of a struct, and are found here without the map.
  const Decoded& decode_again(MPI_Datatype handle) {
    auto& [known, decoded] = recent_[place_of<few>(handle)];
    if (decoded == nullptr || known != handle) {
      const Decoded& found = decode(handle);
      // decode() may have come back here and changed the same place, so both parts of it are set.
      known = handle;
      decoded = &found;
    }
    return *decoded;
  }

  Decoded decode_new(MPI_Datatype handle) {
    const TypeEnvelope envelope = type_envelope_of(handle);
    const Bounds bounds = bounds_of(handle);
    if (is_predefined_combiner(envelope.combiner) && envelope.combiner != value_index) {
      Datatype named = with_library_bounds(named_type(handle, bounds), bounds);
      const Offset element = aligned_element_of_named(named);
      const Offset widest = widest_element_of_named(handle, named.size());
      return {std::move(named), element, widest, std::make_shared<const Elements>(bounds.size),
              is_of_long_doubles(handle)};
    }
    const Contents& contents = held_.emplace_back(handle, envelope);
    Children children;
    children.reserve(contents.types().size());
    for (const MPI_Datatype type : contents.types()) children.add(decode_again(type));
    Datatype made = with_library_bounds(construct(envelope.combiner, contents, children, bounds), bounds);
    const Offset aligned =
        is_miscounted(*made.layout, children) ? 0 : aligned_element_of(envelope.combiner, contents, children);
    return {std::move(made), aligned, widest_element_of(children),
            elements_of(envelope.combiner, contents, children, bounds), have_long_doubles(children)};
  }

  std::unordered_map<std::uintptr_t, Decoded> known_;
  std::array<std::pair<MPI_Datatype, const Decoded*>, few> recent_{};
  // Open MPI makes new handles for some of the types it gives out, and reuses an address once its handle is freed. So a
  // handle says which type is meant only while all are kept.
  std::deque<Contents> held_;
  int depth_ = 0;
};

}  // namespace

DescriptionLength description_length(MPI_Datatype handle) noexcept {
  try {
    DescriptionLength length = EntryCounter().count(handle);
    if (length.types <= EntryCounter::most_visits) length.types = 0;
    return length;
  } catch (const std::exception&) {
    return {};
  }
}

std::optional<Decoded> decode(MPI_Datatype handle) {
  try {
    return Decoder().decode(handle);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace gapless::mpi
