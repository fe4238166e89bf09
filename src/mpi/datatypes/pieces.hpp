// Where messages lose elements because the library moves them in pieces, and what becomes of parts of elements. Gapless
// leaves such sends to the library, which cuts its own noncontiguous messages between elements, or unpacks such
// receives itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"
#include "layout/layout.hpp"
#include "mpi/table/library_traits.hpp"
#include "transfer/message.hpp"

namespace gapless::mpi {

/// May the library cut packed bytes of a datatype anywhere, whatever datatype receives them? `aligned`: does every
/// basic element lie at a multiple of its size in the packed stream?
///
/// MPICH sends long messages in pieces of a multiple of 16 bytes, and cannot receive an element that lies in two of
/// them. Open MPI can, but for elements of more than 16 bytes, of which it loses some. Both send whole elements of
/// noncontiguous messages of their own.
constexpr bool library_may_cut(bool aligned, layout::Offset widest_element) noexcept {
  return library_loses_cut_elements ? aligned : widest_element <= 16;
}

/// Will the library cut a message of so many packed bytes, if it may?
constexpr bool is_long_enough_to_be_cut(std::size_t bytes) noexcept { return bytes > longest_uncut_message; }
/// Would it cut so many packed bytes of that datatype where not every receiver can put an element together?
inline bool would_lose_elements(std::size_t bytes, const transfer::Described& type) noexcept {
  return is_long_enough_to_be_cut(bytes) && !type.may_be_cut;
}
/// May the library lose parts of so many bytes that it receives into a datatype by itself? Beside a GPU they may be
/// packed bytes of GPU memory, which the library cannot send as what they are.
inline bool would_be_lost_in_pieces(std::size_t bytes, const transfer::Described& type) noexcept {
  return (is_long_enough_to_be_cut(bytes) && type.is_lost_in_pieces) ||
         (would_lose_elements(bytes, type) && device::in_use());
}

/// Would the library lose the end of so many contiguous elements of `size` bytes, with gaps between them, if a process
/// sent them to itself in a collective?
constexpr bool would_lose_end_of_own_part(std::size_t size, std::size_t count) noexcept {
  if (!library_loses_ends_of_own_parts || count < 2 || size == 0 || count > SIZE_MAX / size) return false;
  const std::size_t bytes = size * count, last_piece = (bytes - 1) % piece_of_own_part + 1;
  return bytes > piece_of_own_part && size > last_piece;
}

/// How many of so many bytes that have arrived does the library put into memory? Of short messages MPICH receives whole
/// basic elements only, and returns an error for a message that ends inside a basic element, except in jobs of one
/// process. Open MPI receives the part of the element as well. (MPI_Get_elements is not asked: MPICH 5.0.2 divides by
/// zero for some datatypes with pairs.)
inline std::size_t bytes_that_library_receives(std::size_t arrived, const transfer::Described& type) noexcept {
  constexpr std::size_t longest_diagnosed = 8192;
  const bool may_end_anywhere = library_receives_parts_of_elements || arrived > longest_diagnosed;
  if (may_end_anywhere || type.elements == nullptr) return arrived;
  return static_cast<std::size_t>(type.elements->whole(static_cast<layout::Offset>(arrived)));
}

}  // namespace gapless::mpi
