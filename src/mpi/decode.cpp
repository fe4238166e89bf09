// The library's own description of a datatype (MPI 5.0, 5.1.13), rebuilt with the constructors of layout/datatype.hpp.
//
// Bounds come from the library at every level: how a struct's extent is padded is its business and differs. Size and
// true bounds come from both, and where they disagree the type is not ours, so a misunderstanding costs speed and never
// data. True bounds may be wider, though, than what is named: MPICH counts the empty blocks of a struct, and lets some
// darrays begin at 0.
#include "mpi/decode.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <exception>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mpi/native.hpp"

namespace gapless::mpi {
namespace {

using layout::ArrayOrder;
using layout::Datatype;
using layout::Distribution;
using layout::Offset;
using Numbers = std::span<const Offset>;

struct NotOurs : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(int code) {
  if (code != MPI_SUCCESS) throw NotOurs("the library did not answer");
}

// Combiners that not every header names. MPI-1's constructors take byte displacements as integers; Fortran programs on
// libraries that still have them make such types.
#if defined(GAPLESS_VARIANT_ABI)
constexpr int hvector_integer = -1, hindexed_integer = -2, struct_integer = -3, value_index = MPI_COMBINER_VALUE_INDEX;
#elif defined(GAPLESS_VARIANT_MPICH)
constexpr int hvector_integer = MPI_COMBINER_HVECTOR_INTEGER, hindexed_integer = MPI_COMBINER_HINDEXED_INTEGER,
              struct_integer = MPI_COMBINER_STRUCT_INTEGER, value_index = 20;
#else
constexpr int hvector_integer = MPI_COMBINER_VECTOR + 1, hindexed_integer = MPI_COMBINER_INDEXED + 1,
              struct_integer = MPI_COMBINER_INDEXED_BLOCK + 1, value_index = -1;
#endif

struct Envelope {
  MPI_Count integers = 0, addresses = 0, large_counts = 0, datatypes = 0;
  int combiner = 0;
  bool large = false;  ///< asked by the large-count functions, so the contents are to be, too
};

// MPICH raises an error when the plain function meets a type made by a large-count constructor, so it is not tried
// first.
Envelope envelope_of(MPI_Datatype handle) {
  Envelope envelope;
#if GAPLESS_DECLARED_Type_get_envelope_c
  if (native.Type_get_envelope_c != nullptr && native.Type_get_contents_c != nullptr) {
    envelope.large = true;
    check(native.Type_get_envelope_c(handle, &envelope.integers, &envelope.addresses, &envelope.large_counts,
                                     &envelope.datatypes, &envelope.combiner));
    return envelope;
  }
#endif
  int integers = 0, addresses = 0, datatypes = 0;
  check(native.Type_get_envelope(handle, &integers, &addresses, &datatypes, &envelope.combiner));
  envelope.integers = integers;
  envelope.addresses = addresses;
  envelope.datatypes = datatypes;
  return envelope;
}

// MPI forbids freeing types that nobody constructed.
bool is_predefined_combiner(int combiner) noexcept {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER || combiner == value_index;
}

// A type's constructor arguments. Owns the handles of constructed children, which MPI gives out as new references.
class Contents {
 public:
  Contents(MPI_Datatype handle, const Envelope& envelope)
      : integers_(static_cast<std::size_t>(envelope.integers)), types_(static_cast<std::size_t>(envelope.datatypes)) {
    std::vector<MPI_Aint> addresses(static_cast<std::size_t>(envelope.addresses));
    std::vector<MPI_Count> counts(static_cast<std::size_t>(envelope.large_counts));
#if GAPLESS_DECLARED_Type_get_contents_c
    if (envelope.large) {
      check(native.Type_get_contents_c(handle, envelope.integers, envelope.addresses, envelope.large_counts,
                                       envelope.datatypes, integers_.data(), addresses.data(), counts.data(),
                                       types_.data()));
      fill_numbers(addresses, counts);
      return;
    }
#endif
    check(native.Type_get_contents(handle, static_cast<int>(envelope.integers), static_cast<int>(envelope.addresses),
                                   static_cast<int>(envelope.datatypes), integers_.data(), addresses.data(),
                                   types_.data()));
    fill_numbers(addresses, counts);
  }
  ~Contents() {
    for (MPI_Datatype type : types_) {
      if (!is_predefined(type)) native.Type_free(&type);
    }
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  /// Integers then addresses, or the large counts: for most constructors the arguments in order, whichever form was
  /// called.
  Numbers numbers(std::size_t begin, std::size_t count) const {
    if (begin + count > numbers_.size()) throw NotOurs("fewer arguments than the constructor has");
    return Numbers(numbers_).subspan(begin, count);
  }
  Offset number(std::size_t i) const { return numbers(i, 1)[0]; }
  std::size_t count(std::size_t i) const { return static_cast<std::size_t>(number(i)); }

  bool is_large() const noexcept { return large_; }
  Offset integer(std::size_t i) const { return integers_.at(i); }
  std::span<const int> integers(std::size_t begin, std::size_t count) const {
    if (begin + count > integers_.size()) throw NotOurs("fewer arguments than the constructor has");
    return std::span(integers_).subspan(begin, count);
  }
  std::span<const MPI_Datatype> types() const noexcept { return types_; }

 private:
  void fill_numbers(const std::vector<MPI_Aint>& addresses, const std::vector<MPI_Count>& counts) {
    large_ = !counts.empty();
    if (large_) {
      numbers_.assign(counts.begin(), counts.end());
    } else {
      numbers_.reserve(integers_.size() + addresses.size());
      numbers_.assign(integers_.begin(), integers_.end());
      numbers_.insert(numbers_.end(), addresses.begin(), addresses.end());
    }
  }

  std::vector<int> integers_;
  std::vector<MPI_Datatype> types_;
  std::vector<Offset> numbers_;
  bool large_ = false;
};

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

// A value with an index behind it: the index ends where the type's bytes end.
Datatype pair_type(Offset value_size, Offset index_size, const Bounds& bounds) {
  return layout::pair(value_size, index_size, bounds.true_extent - index_size, bounds.extent);
}

Datatype named_type(MPI_Datatype handle, const Bounds& bounds) {
  struct Pair {
    MPI_Datatype handle;
    Offset value_size;
  };
  const std::array<Pair, 5> pairs{{{MPI_FLOAT_INT, sizeof(float)},
                                   {MPI_DOUBLE_INT, sizeof(double)},
                                   {MPI_LONG_INT, sizeof(long)},
                                   {MPI_SHORT_INT, sizeof(short)},
                                   {MPI_LONG_DOUBLE_INT, sizeof(long double)}}};
  for (const Pair& pair : pairs) {
    if (pair.handle == handle) return pair_type(pair.value_size, sizeof(int), bounds);
  }
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
  return layout::subarray(contents.numbers(sizes, dimensions), contents.numbers(sizes + dimensions, dimensions),
                          contents.numbers(sizes + 2 * dimensions, dimensions), order_of(contents.integer(order)),
                          child);
}

Datatype darray_type(const Contents& contents, const Datatype& child) {
  const auto dimensions = static_cast<std::size_t>(contents.integer(2));
  // The large-count form moves the global sizes to the large counts, and what follows them up.
  const auto global_sizes = contents.numbers(contents.is_large() ? 0 : 3, dimensions);
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

Datatype construct(int combiner, const Contents& contents, std::span<const Decoded> children, const Bounds& bounds) {
  if (combiner == value_index) return pair_type(children[0].datatype.size(), children[1].datatype.size(), bounds);
  if (combiner == MPI_COMBINER_STRUCT || combiner == struct_integer) {
    const std::size_t n = contents.count(0);
    if (n != children.size()) throw NotOurs("a struct with other than one type per block");
    std::vector<Datatype> fields;
    fields.reserve(n);
    for (const Decoded& child : children) fields.push_back(child.datatype);
    return layout::structure(contents.numbers(1, n), contents.numbers(1 + n, n), fields);
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

// Numbers of more than 8 bytes are as good as two halves.
constexpr Offset widest_element = 8;

Offset aligned_element_of_named(const Datatype& type) {
  const bool is_number = type.layout->is_contiguous() && std::has_single_bit(static_cast<std::uint64_t>(type.size()));
  return is_number ? std::min(type.size(), widest_element) : 0;
}

Offset aligned_element_of_fields(Numbers block_lengths, std::span<const Decoded> fields) {
  Offset widest = 1, packed = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Offset bytes = block_lengths[i] * fields[i].datatype.size();
    if (bytes == 0) continue;
    const Offset element = fields[i].aligned_element;
    if (element == 0 || packed % element != 0) return 0;
    widest = std::max(widest, element);
    packed += bytes;
  }
  return packed % widest == 0 ? widest : 0;
}

Offset aligned_element_of(int combiner, const Contents& contents, std::span<const Decoded> children) {
  static constexpr Offset once[] = {1, 1};
  if (combiner == value_index) return aligned_element_of_fields(once, children);
  if (children.size() == 1) return children[0].aligned_element;
  return aligned_element_of_fields(contents.numbers(1, children.size()), children);
}

/// Decodes a type and those it is made of, each once, however often they occur, where the library says that they are
/// the same. Open MPI does not always, so their number has an end, too.
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

  Decoded decode_new(MPI_Datatype handle) {
    const Envelope envelope = envelope_of(handle);
    const Bounds bounds = bounds_of(handle);
    if (is_predefined_combiner(envelope.combiner) && envelope.combiner != value_index) {
      Datatype named = with_library_bounds(named_type(handle, bounds), bounds);
      const Offset element = aligned_element_of_named(named);
      return {std::move(named), element};
    }
    const Contents& contents = held_.emplace_back(handle, envelope);
    std::vector<Decoded> children;
    children.reserve(contents.types().size());
    for (const MPI_Datatype type : contents.types()) children.push_back(decode(type));
    return {with_library_bounds(construct(envelope.combiner, contents, children, bounds), bounds),
            aligned_element_of(envelope.combiner, contents, children)};
  }

  std::unordered_map<std::uintptr_t, Decoded> known_;
  // Open MPI makes some of the types it gives out anew, and the next one at the same address once that is freed: a
  // handle says which type is meant only while all are kept.
  std::deque<Contents> held_;
  int depth_ = 0;
};

}  // namespace

bool is_predefined(MPI_Datatype handle) noexcept {
  try {
    return is_predefined_combiner(envelope_of(handle).combiner);
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<Decoded> decode(MPI_Datatype handle) noexcept {
  try {
    return Decoder().decode(handle);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace gapless::mpi
