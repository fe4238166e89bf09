// MPI's array constructors, subarray and darray (MPI 5.0, 5.1.3 and 5.1.4): one strided step per dimension, fastest
// first.
#include <algorithm>
#include <vector>

#include "layout/algebra/build.hpp"
#include "layout/algebra/canonical.hpp"
#include "layout/datatype/bounds.hpp"
#include "layout/datatype/datatype.hpp"

namespace gapless::layout {

namespace {

void require(bool condition, const char* otherwise, std::size_t argument, std::size_t item = ArgumentError::whole) {
  if (!condition) throw ArgumentError(otherwise, argument, item);
}

/// The arguments of darray.
enum Darray : std::size_t { processes_of, rank_of, sizes_of, distributions_of, arguments_of, grid_of };

/// The dimension that varies `i`-th fastest.
std::size_t dimension(std::size_t i, std::size_t dimensions, ArrayOrder order) {
  return order == ArrayOrder::fortran ? i : dimensions - 1 - i;
}

/// An array's bounds are those of the whole array, whatever part of it is named.
Datatype array_type(LayoutPointer layout, Offset extent) {
  Datatype type;
  type.layout = std::move(layout);
  type.upper_bound = extent;
  type.has_explicit_bounds = true;
  store_true_bounds(type);
  return type;
}

/// What one process owns of one dimension that is dealt out in blocks, round robin.
struct Share {
  Offset first = 0;      ///< element where the first block begins
  Offset block = 0;      ///< elements of a whole block
  Offset blocks = 0;     ///< whole blocks
  Offset period = 0;     ///< elements from one block to the next
  Offset remainder = 0;  ///< elements of the short block after the whole ones, if the last block of all is ours
};

/// Of dimension d.
Share share_of(std::size_t d, Offset size, Distribution distribution, Offset argument, Offset processes, Offset rank) {
  const bool is_default = argument == default_distribution_argument;
  require(is_default || argument > 0, "darray: distribution arguments must be positive or the default", arguments_of,
          d);
  Share share;
  switch (distribution) {
    case Distribution::none:
      require(processes == 1, "darray: an undistributed dimension needs a process grid of 1", grid_of, d);
      share.block = std::max<Offset>(size, 1);
      break;
    case Distribution::block:
      share.block = is_default ? std::max<Offset>((size - 1) / processes + 1, 1) : argument;
      require(share.block >= (size - 1) / processes + 1, "darray: blocks too small to hold the dimension", arguments_of,
              d);
      break;
    case Distribution::cyclic:
      share.block = is_default ? 1 : argument;
      break;
  }
  share.period = checked::multiply(share.block, processes);
  share.first = share.block * rank;
  const Offset left = size - share.first;
  if (left <= 0) return share;
  share.blocks = left / share.period;
  const Offset tail = left % share.period;
  if (tail >= share.block) {
    ++share.blocks;
  } else {
    share.remainder = tail;
  }
  return share;
}

/// The child, `extent` bytes an element, at every element of the share.
LayoutPointer distribute(const LayoutPointer& child, const Share& share, Offset extent) {
  // Offsets of blocks that do not exist might not fit.
  if (share.blocks == 0 && share.remainder == 0) return empty();
  const Offset first = checked::multiply(share.first, extent);
  if (share.blocks == 0) return shift(repeat(child, share.remainder, extent), first);
  const bool is_one_block = share.blocks == 1 && share.remainder == 0;
  const Offset period = is_one_block ? 0 : checked::multiply(share.period, extent);
  const LayoutPointer whole = repeat(repeat(child, share.block, extent), share.blocks, period);
  if (share.remainder == 0) return shift(whole, first);
  const Offset last = checked::add(first, checked::multiply(share.blocks, period));
  const LayoutPointer terms[] = {shift(whole, first), shift(repeat(child, share.remainder, extent), last)};
  return concatenate(terms);
}

}  // namespace

Datatype subarray(std::span<const Offset> sizes, std::span<const Offset> subsizes, std::span<const Offset> starts,
                  ArrayOrder order, const Datatype& child) {
  constexpr std::size_t subsizes_of = 1, starts_of = 2;
  constexpr const char* different = "subarray: lists of different lengths";
  require(subsizes.size() == sizes.size(), different, subsizes_of);
  require(starts.size() == sizes.size(), different, starts_of);
  Layout layout = *child.layout;
  Offset extent = child.extent();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t d = dimension(i, sizes.size(), order);
    constexpr const char* outside = "subarray: part outside the array";
    require(subsizes[d] >= 0 && subsizes[d] <= sizes[d], outside, subsizes_of, d);
    require(starts[d] >= 0 && starts[d] <= sizes[d] - subsizes[d], outside, starts_of, d);
    build::repeat_in_place(layout, subsizes[d], extent);
    build::shift_in_place(layout, checked::multiply(starts[d], extent));
    extent = checked::multiply(extent, sizes[d]);
  }
  return array_type(build::finish(std::move(layout)), extent);
}

Datatype darray(Offset process_count, Offset rank, std::span<const Offset> global_sizes,
                std::span<const Distribution> distributions, std::span<const Offset> distribution_arguments,
                std::span<const Offset> process_sizes, ArrayOrder order, const Datatype& child) {
  const std::size_t dimensions = global_sizes.size();
  constexpr const char* different = "darray: lists of different lengths";
  require(distributions.size() == dimensions, different, distributions_of);
  require(distribution_arguments.size() == dimensions, different, arguments_of);
  require(process_sizes.size() == dimensions, different, grid_of);
  require(rank >= 0 && rank < process_count, "darray: rank outside the processes", rank_of);
  Offset grid = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    require(process_sizes[d] > 0, "darray: process grid sizes must be positive", grid_of, d);
    grid = checked::multiply(grid, process_sizes[d]);
  }
  require(grid == process_count, "darray: process grid does not hold the processes", grid_of);

  // Ranks are dealt to the grid in row-major order, whatever the order of the array.
  std::vector<Offset> coordinates(dimensions);
  for (std::size_t d = dimensions; d-- > 0;) {
    coordinates[d] = rank % process_sizes[d];
    rank /= process_sizes[d];
  }
  LayoutPointer layout = child.layout;
  Offset extent = child.extent();
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t d = dimension(i, dimensions, order);
    require(global_sizes[d] >= 0, "darray: negative array size", sizes_of, d);
    const Share share =
        share_of(d, global_sizes[d], distributions[d], distribution_arguments[d], process_sizes[d], coordinates[d]);
    layout = distribute(layout, share, extent);
    extent = checked::multiply(extent, global_sizes[d]);
  }
  return array_type(std::move(layout), extent);
}

}  // namespace gapless::layout
