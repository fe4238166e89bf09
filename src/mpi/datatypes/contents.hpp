// What a datatype was made from, as the library tells it: its envelope and its contents.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/hash.hpp"
#include "layout/datatype/numbers.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi {

/// The datatype is better left to the library.
struct NotOurs : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws NotOurs.
void check(int code);

// Combiners that not every header names. MPI-1's constructors take byte displacements as integers; Fortran programs on
// libraries that still have them make such types.
#if defined(GAPLESS_VARIANT_ABI)
inline constexpr int hvector_integer = -1, hindexed_integer = -2, struct_integer = -3,
                     value_index = MPI_COMBINER_VALUE_INDEX;
#elif defined(GAPLESS_VARIANT_MPICH)
inline constexpr int hvector_integer = MPI_COMBINER_HVECTOR_INTEGER, hindexed_integer = MPI_COMBINER_HINDEXED_INTEGER,
                     struct_integer = MPI_COMBINER_STRUCT_INTEGER, value_index = 20;
#else
inline constexpr int hvector_integer = MPI_COMBINER_VECTOR + 1, hindexed_integer = MPI_COMBINER_INDEXED + 1,
                     struct_integer = MPI_COMBINER_INDEXED_BLOCK + 1, value_index = -1;
#endif

struct TypeEnvelope {
  MPI_Count integers = 0, addresses = 0, large_counts = 0, datatypes = 0;
  int combiner = 0;
  bool large = false;  ///< asked by the large-count functions, so the contents are to be, too
};

TypeEnvelope type_envelope_of(MPI_Datatype handle);

/// MPI forbids freeing types that nobody constructed.
bool is_predefined_combiner(int combiner) noexcept;

/// Does the type exist without having been constructed, and so for as long as the library?
bool is_predefined(MPI_Datatype handle) noexcept;

/// Where a handle lies in a table of that many places.
template <std::size_t size>
std::size_t place_of(MPI_Datatype handle) noexcept {
  static_assert(std::has_single_bit(size));
  return slot_of(number_of(handle), std::countr_zero(size));
}

/// So many values, which the library fills: millions of them are not written twice.
template <class Value>
class Filled {
 public:
  explicit Filled(std::size_t size) : values_(std::make_unique_for_overwrite<Value[]>(size)), size_(size) {}
  Value* data() noexcept { return values_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::span<const Value> all() const noexcept { return {values_.get(), size_}; }

 private:
  std::unique_ptr<Value[]> values_;
  std::size_t size_;
};

/// A type's constructor arguments, in the arrays that the library filled. Owns the handles of constructed children,
/// which MPI gives out as new references.
class Contents {
 public:
  Contents(MPI_Datatype handle, const TypeEnvelope& envelope);
  ~Contents();
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  /// Integers then addresses, or the large counts: for most constructors the arguments in order, whichever form was
  /// called. Lists are never part integers and part addresses.
  layout::Numbers numbers(std::size_t begin, std::size_t count) const;
  std::vector<layout::Offset> list(std::size_t begin, std::size_t count) const;
  layout::Offset number(std::size_t i) const { return numbers(i, 1)[0]; }
  std::size_t count(std::size_t i) const { return static_cast<std::size_t>(number(i)); }

  bool is_large() const noexcept { return is_large_; }
  layout::Offset integer(std::size_t i) const { return integers(i, 1)[0]; }
  std::span<const int> integers(std::size_t begin, std::size_t count) const;
  std::span<const MPI_Datatype> types() const noexcept { return types_.all(); }

 private:
  Filled<int> integers_;
  Filled<layout::Offset> wide_;  ///< addresses, or large counts
  Filled<MPI_Datatype> types_;
  bool is_large_ = false;
};

}  // namespace gapless::mpi
