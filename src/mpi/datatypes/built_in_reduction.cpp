#include "mpi/datatypes/built_in_reduction.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>

namespace gapless::mpi {
namespace {

using reduction::Number;
using reduction::Operator;

struct NamedNumber {
  MPI_Datatype datatype;
  Number number;
  unsigned per_element = 1;
};

template <class Type>
constexpr Number number_of() noexcept {
  constexpr bool is_short = sizeof(Type) == 4;
  if (std::is_signed_v<Type>) return is_short ? Number::int32 : Number::int64;
  return is_short ? Number::uint32 : Number::uint64;
}

std::optional<NamedNumber> number_named(MPI_Datatype datatype) noexcept {
  // Made at the first call, when Open MPI's handles are known.
  static const NamedNumber all[] = {
      {MPI_DOUBLE, Number::float64},
      {MPI_FLOAT, Number::float32},
      {MPI_INT, number_of<int>()},
      {MPI_LONG, number_of<long>()},
      {MPI_LONG_LONG, number_of<long long>()},
      {MPI_UNSIGNED, number_of<unsigned>()},
      {MPI_UNSIGNED_LONG, number_of<unsigned long>()},
      {MPI_UNSIGNED_LONG_LONG, number_of<unsigned long long>()},
      {MPI_INT32_T, Number::int32},
      {MPI_UINT32_T, Number::uint32},
      {MPI_INT64_T, Number::int64},
      {MPI_UINT64_T, Number::uint64},
      {MPI_C_FLOAT_COMPLEX, Number::float32, 2},
      {MPI_C_DOUBLE_COMPLEX, Number::float64, 2},
      {MPI_INTEGER, Number::int32},
      {MPI_REAL, Number::float32},
      {MPI_DOUBLE_PRECISION, Number::float64},
      {MPI_COMPLEX, Number::float32, 2},
      {MPI_DOUBLE_COMPLEX, Number::float64, 2},
  };
  const auto* const found = std::ranges::find(all, datatype, &NamedNumber::datatype);
  if (found == std::end(all)) return std::nullopt;
  return *found;
}

std::optional<Operator> operator_named(MPI_Op op) noexcept {
  if (op == MPI_SUM) return Operator::sum;
  if (op == MPI_PROD) return Operator::product;
  if (op == MPI_MIN) return Operator::least;
  if (op == MPI_MAX) return Operator::greatest;
  return std::nullopt;
}

}  // namespace

std::optional<BuiltInReduction> built_in_reduction(MPI_Op op, MPI_Datatype datatype, MPI_Count bytes) noexcept {
  const std::optional<Operator> named = operator_named(op);
  const std::optional<NamedNumber> number = named ? number_named(datatype) : std::nullopt;
  if (!number || (number->per_element > 1 && *named != Operator::sum)) return std::nullopt;
  const BuiltInReduction found{{*named, number->number}, number->per_element};
  if (bytes != static_cast<MPI_Count>(found.bytes_of_element())) return std::nullopt;
  return found;
}

}  // namespace gapless::mpi
