// A piece of work: one datatype, told to gapless, to the oracle and to the hand-written kernels, each in its own terms.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gapless/gapless.h"

namespace gapless::bench {

struct TypeFree {
  void operator()(gapless_type* type) const { gapless_type_free(type); }
};
using Type = std::unique_ptr<gapless_type, TypeFree>;

/// The type a text names; a text that names none ends the program.
Type parse_type(const std::string& text);

/// The oracle's view, written by plain loops: contiguous blocks in packed order.
struct Blocks {
  std::vector<std::int64_t> offsets;
  std::int64_t length = 0;            ///< of every block, unless `lengths` has entries
  std::vector<std::int64_t> lengths;  ///< of each block

  std::int64_t length_of(std::size_t i) const { return lengths.empty() ? length : lengths[i]; }
  std::int64_t packed_bytes() const;
  std::int64_t span() const;  ///< from 0 to the end of the last byte
  /// Distinct 64-byte lines that hold a named byte, for memory that begins on a line.
  std::int64_t lines_touched() const;
};

/// The hand-written kernels' views.
struct Contiguous {};
/// Rows of `row` bytes in up to three outer dimensions, innermost first; unused ones have count 1.
struct Box {
  std::int64_t base;  ///< offset of the first row
  std::int64_t row;
  std::int64_t count[3];
  std::int64_t stride[3];
};
/// Column after column of a row-major matrix.
struct Transposed {
  std::int64_t rows, columns, element, row_stride;
};
/// Blocks of one length at listed offsets.
struct UniformList {
  std::int64_t length;
  std::vector<std::uint32_t> offsets;  ///< in units of the length
};
/// Runs of differing lengths, everything in units of 4 bytes.
struct RaggedList {
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> starts;  ///< packed; one more than offsets
};
/// `used` contiguous bytes of every `extent`.
struct Records {
  std::int64_t count, used, extent;
};
using HandView = std::variant<Contiguous, Box, Transposed, UniformList, RaggedList, Records>;

struct Workload {
  std::string family;  ///< what a bar speaks of: contiguous, 2-D, 3-D, ...
  std::string name;
  Type type;
  std::int64_t count = 1;  ///< repetitions of the type
  Blocks blocks;
  HandView hand;
  std::function<std::string()> text;  ///< the type in words, for peers; long where it holds lists

  std::int64_t packed_bytes() const { return blocks.packed_bytes(); }
  /// What cannot be avoided: 64-byte lines touched, 4 bytes of description a block where blocks are listed (8 where
  /// their lengths differ), packed bytes.
  std::int64_t traffic() const;
};

Workload contiguous(std::int64_t bytes);
Workload vector(std::int64_t count, std::int64_t length, std::int64_t stride);
/// `sub` elements from `start` of an array of `size` elements in C order, `element` bytes each, in 2 to 4 dimensions.
Workload subarray(const std::string& family, const std::vector<std::int64_t>& size,
                  const std::vector<std::int64_t>& sub, const std::vector<std::int64_t>& start, std::int64_t element);
Workload transposed(std::int64_t rows, std::int64_t columns, std::int64_t element);
/// Blocks of `length` bytes, `gap_limit` - 1 random lengths apart at most, one apart at least.
Workload indexed_block(std::int64_t count, std::int64_t length, std::int64_t gap_limit);
/// The bytes of `vector(count, length, stride)`, told as a list.
Workload vector_as_list(std::int64_t count, std::int64_t length, std::int64_t stride, bool with_lengths);
/// Runs of 4 to `longest` bytes with gaps of 4 to 16.
Workload ragged(std::int64_t count, std::int64_t longest);
/// struct {double; int[2]; char}, as a C compiler lays it out.
Workload particles(std::int64_t count);

}  // namespace gapless::bench
