// MPI's type constructors over layouts (MPI 5.0, chapter 5), without MPI.
//
// A Datatype is a layout plus the bounds that decide where its next repetition goes. Lower bound, upper bound and true
// bounds are kept apart from the layout, because resizing changes where repetitions go and never which bytes are named.
// Constructors take element counts and displacements as MPI does; displacements are in bytes exactly where MPI's
// h-constructors have them in bytes. They throw ArgumentError for negative counts and the like, and std::overflow_error
// where a size or bound leaves 63 bits.
//
// A struct's upper bound is not padded to an alignment: MPI leaves that padding to the library (5.1.6), so whoever
// knows the library's datatype takes its bounds from MPI_Type_get_extent and puts them here with resized().
#pragma once

#include <span>
#include <stdexcept>

#include "layout/datatype/numbers.hpp"
#include "layout/layout.hpp"

namespace gapless::layout {

struct Datatype {
  LayoutPointer layout;
  Offset lower_bound = 0;
  Offset upper_bound = 0;
  Offset true_lower_bound = 0;  ///< smallest byte offset named (0 when empty)
  Offset true_upper_bound = 0;  ///< one past the largest byte offset named (0 when empty)

  /// The bounds come from MPI_Type_create_resized, subarray or darray somewhere inside: such bounds alone decide those
  /// of the types built from this one (MPI 5.0, 5.1.7).
  bool has_explicit_bounds = false;

  Offset size() const noexcept { return layout->size; }
  Offset extent() const noexcept { return upper_bound - lower_bound; }
};

/// What a constructor refuses, and which of its arguments that is: the first is 0, and so is a list's first item.
struct ArgumentError : std::invalid_argument {
  static constexpr auto whole = static_cast<std::size_t>(-1);  // no single item
  ArgumentError(const char* what, std::size_t argument_, std::size_t item_ = whole)
      : std::invalid_argument(what), argument(argument_), item(item_) {}
  std::size_t argument;
  std::size_t item;
};

enum class ArrayOrder { c, fortran };
enum class Distribution { none, block, cyclic };

/// MPI_DISTRIBUTE_DFLT_DARG
inline constexpr Offset default_distribution_argument = -1;

/// A basic type of `size` contiguous bytes; `extent` may exceed it.
Datatype named(Offset size, Offset extent);
/// A pair type such as MPI_DOUBLE_INT: a value of `value_size` bytes at 0, an index of `index_size` bytes at
/// `index_offset`.
Datatype pair(Offset value_size, Offset index_size, Offset index_offset, Offset extent);

Datatype contiguous(Offset count, const Datatype& child);
Datatype vector(Offset count, Offset block_length, Offset stride, const Datatype& child);
Datatype hvector(Offset count, Offset block_length, Offset stride_bytes, const Datatype& child);
Datatype indexed(Numbers block_lengths, Numbers displacements, const Datatype& child);
Datatype hindexed(Numbers block_lengths, Numbers displacements_bytes, const Datatype& child);
Datatype indexed_block(Offset block_length, Numbers displacements, const Datatype& child);
Datatype hindexed_block(Offset block_length, Numbers displacements_bytes, const Datatype& child);
Datatype structure(Numbers block_lengths, Numbers displacements_bytes, std::span<const Datatype> children);
/// The same where the fields have few types among them: field i is of type *kinds[kind_of[i]].
Datatype structure(Numbers block_lengths, Numbers displacements_bytes, std::span<const Datatype* const> kinds,
                   std::span<const std::uint32_t> kind_of);
Datatype subarray(std::span<const Offset> sizes, std::span<const Offset> subsizes, std::span<const Offset> starts,
                  ArrayOrder order, const Datatype& child);
Datatype darray(Offset process_count, Offset rank, std::span<const Offset> global_sizes,
                std::span<const Distribution> distributions, std::span<const Offset> distribution_arguments,
                std::span<const Offset> process_sizes, ArrayOrder order, const Datatype& child);
Datatype resized(const Datatype& child, Offset lower_bound, Offset extent);

}  // namespace gapless::layout
