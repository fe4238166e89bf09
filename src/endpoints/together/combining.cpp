#include "endpoints/together/combining.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gapless::mpi::endpoints::together {
namespace {

// Integers are combined as unsigned ones where that gives the same bits, for those may overflow.
template <class Number>
using Wrapping = typename std::conditional_t<std::is_integral_v<Number>, std::make_unsigned<Number>,
                                             std::type_identity<Number>>::type;

struct Sum {
  template <class Number>
  Number operator()(Number a, Number b) const noexcept {
    return static_cast<Number>(static_cast<Wrapping<Number>>(a) + static_cast<Wrapping<Number>>(b));
  }
};
struct Product {
  template <class Number>
  Number operator()(Number a, Number b) const noexcept {
    return static_cast<Number>(static_cast<Wrapping<Number>>(a) * static_cast<Wrapping<Number>>(b));
  }
};
struct Least {
  template <class Number>
  Number operator()(Number a, Number b) const noexcept {
    return a < b ? a : b;
  }
};
struct Greatest {
  template <class Number>
  Number operator()(Number a, Number b) const noexcept {
    return a > b ? a : b;
  }
};

template <class Number, class Operation>
void combine(const std::byte* with, std::byte* into, MPI_Count count) noexcept {
  for (MPI_Count at = 0; at < count; ++at) {
    const auto offset = static_cast<std::size_t>(at) * sizeof(Number);
    Number first, second;
    std::memcpy(&first, with + offset, sizeof first);
    std::memcpy(&second, into + offset, sizeof second);
    first = Operation()(first, second);
    std::memcpy(into + offset, &first, sizeof first);
  }
}

template <class Number>
Combine combining_of(MPI_Op op) noexcept {
  if (op == MPI_SUM) return combine<Number, Sum>;
  if (op == MPI_PROD) return combine<Number, Product>;
  if (op == MPI_MIN) return combine<Number, Least>;
  if (op == MPI_MAX) return combine<Number, Greatest>;
  return nullptr;
}

}  // namespace

Combine combining(MPI_Op op, MPI_Datatype datatype) noexcept {
  if (datatype == MPI_DOUBLE) return combining_of<double>(op);
  if (datatype == MPI_INT) return combining_of<int>(op);
  if (datatype == MPI_FLOAT) return combining_of<float>(op);
  if (datatype == MPI_LONG) return combining_of<long>(op);
  if (datatype == MPI_LONG_LONG) return combining_of<long long>(op);
  if (datatype == MPI_UNSIGNED) return combining_of<unsigned>(op);
  if (datatype == MPI_UNSIGNED_LONG) return combining_of<unsigned long>(op);
  if (datatype == MPI_INT32_T) return combining_of<std::int32_t>(op);
  if (datatype == MPI_INT64_T) return combining_of<std::int64_t>(op);
  if (datatype == MPI_UINT64_T) return combining_of<std::uint64_t>(op);
  return nullptr;
}

}  // namespace gapless::mpi::endpoints::together
