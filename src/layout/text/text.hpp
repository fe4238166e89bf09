// The short text form of a datatype, for `gapless explain` and tests.
//
//   type   := name | constructor "(" arguments ")"
//   name   := byte char int float double int64 … double_int …    (lower-case MPI names without MPI_)
//   lists  := "[" number ("," number)* "]"
// Examples:
//   vector(1024, 1, 4, int)
//   subarray([64,64,64], [1,62,62], [0,1,1], c, double)
//   struct([1,2,1], [0,8,16], [double, int, char])
//   resized(indexed([3,1], [0,8], float), 0, 64)
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "layout/datatype/datatype.hpp"

namespace gapless::layout {

/// what() is one line naming the column and what was expected there.
struct ParseError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
/// The text is a type that reaches beyond 63 bits. what() is one line naming the column.
struct ParsedOverflow : std::overflow_error {
  using std::overflow_error::overflow_error;
};

/// Throws ParseError and ParsedOverflow.
Datatype parse_datatype(std::string_view text);

/// One readable line, e.g. "block 8 B at 0, modes (1024 x 16)".
std::string describe(const Layout& layout);

}  // namespace gapless::layout
