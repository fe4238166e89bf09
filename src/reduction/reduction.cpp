#include "reduction/reduction.hpp"

#include <cstring>

#include "reduction/operators.hpp"

namespace gapless::reduction {
namespace {

template <class Number, class Operation>
void combine(const std::byte* with, std::byte* into, std::uint64_t numbers) noexcept {
  for (std::uint64_t at = 0; at < numbers; ++at) {
    Number first, second;
    std::memcpy(&first, with + at * sizeof first, sizeof first);
    std::memcpy(&second, into + at * sizeof second, sizeof second);
    first = Operation()(first, second);
    std::memcpy(into + at * sizeof first, &first, sizeof first);
  }
}

}  // namespace

Combine combining(const Reduction& reduction) noexcept {
  return visit(reduction,
               []<class Number, class Operation>(Number, Operation) -> Combine { return combine<Number, Operation>; });
}

}  // namespace gapless::reduction
