#include "mpi/datatypes/contents.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <type_traits>

#include "mpi/table/native.hpp"

namespace gapless::mpi {

using layout::Numbers;
using layout::Offset;

void check(int code) {
  if (code != MPI_SUCCESS) throw NotOurs("the library did not answer");
}

// MPICH raises an error when the plain function meets a type made by a large-count constructor, so it is not tried
// first.
TypeEnvelope type_envelope_of(MPI_Datatype handle) {
  TypeEnvelope envelope;
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

bool is_predefined_combiner(int combiner) noexcept {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER || combiner == value_index;
}

bool is_predefined(MPI_Datatype handle) noexcept {
  try {
    return is_predefined_combiner(type_envelope_of(handle).combiner);
  } catch (const std::exception&) {
    return false;
  }
}

namespace {

std::size_t size_of(MPI_Count count) { return static_cast<std::size_t>(count); }

/// Numbers as the library takes them, in the memory of the offsets they become.
template <class Wide>
Wide* as_filled_by_library(Filled<Offset>& offsets) {
  static_assert(std::is_integral_v<Wide> && sizeof(Wide) == sizeof(Offset));
  return reinterpret_cast<Wide*>(offsets.data());
}

}  // namespace

Contents::Contents(MPI_Datatype handle, const TypeEnvelope& envelope)
    : integers_(size_of(envelope.integers)),
      wide_(size_of(std::max(envelope.addresses, envelope.large_counts))),
      types_(size_of(envelope.datatypes)),
      is_large_(envelope.large_counts != 0) {
#if GAPLESS_DECLARED_Type_get_contents_c
  if (envelope.large) {
    if (is_large_ && envelope.addresses != 0) throw NotOurs("addresses beside large counts");
    check(native.Type_get_contents_c(handle, envelope.integers, envelope.addresses, envelope.large_counts,
                                     envelope.datatypes, integers_.data(), as_filled_by_library<MPI_Aint>(wide_),
                                     as_filled_by_library<MPI_Count>(wide_), types_.data()));
    return;
  }
#endif
  check(native.Type_get_contents(handle, static_cast<int>(envelope.integers), static_cast<int>(envelope.addresses),
                                 static_cast<int>(envelope.datatypes), integers_.data(),
                                 as_filled_by_library<MPI_Aint>(wide_), types_.data()));
}

Contents::~Contents() {
  // A struct has millions of fields, and few types that the library would have to be asked about.
  constexpr std::size_t few = 32;
  std::array<std::uintptr_t, few> predefined{};
  for (MPI_Datatype type : types_.all()) {
    std::uintptr_t& known = predefined[place_of<few>(type)];
    if (known == number_of(type)) continue;
    if (is_predefined(type)) {
      known = number_of(type);
    } else {
      native.Type_free(&type);
    }
  }
}

Numbers Contents::numbers(std::size_t begin, std::size_t count) const {
  const std::size_t narrow = is_large_ ? 0 : integers_.size();
  if (begin + count <= narrow) return integers_.all().subspan(begin, count);
  if (begin < narrow || begin - narrow + count > wide_.size()) {
    throw NotOurs("fewer arguments than the constructor has");
  }
  return wide_.all().subspan(begin - narrow, count);
}

std::vector<Offset> Contents::list(std::size_t begin, std::size_t count) const {
  const Numbers values = numbers(begin, count);
  std::vector<Offset> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(values[i]);
  return result;
}

std::span<const int> Contents::integers(std::size_t begin, std::size_t count) const {
  if (begin + count > integers_.size()) throw NotOurs("fewer arguments than the constructor has");
  return integers_.all().subspan(begin, count);
}

}  // namespace gapless::mpi
