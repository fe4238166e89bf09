// Where messages lose elements because the library moves them in pieces. Gapless leaves such sends to the library,
// which cuts its own noncontiguous messages between elements, or unpacks such receives itself.
#pragma once

#include <cstddef>

#include "device/device.hpp"
#include "layout/layout.hpp"
#include "transfer/message.hpp"

namespace gapless::mpi {

/// Does the library lose elements of any size that lie in two pieces?
#if defined(GAPLESS_VARIANT_OPENMPI)
inline constexpr bool library_loses_cut_elements = false;
#else
inline constexpr bool library_loses_cut_elements = true;
#endif

/// Does a process cut what it sends on in a collective as the extent of its own datatype says? Then all processes need
/// one extent, wherever some pack. MPICH does, in the ring of MPI_Allgatherv.
inline constexpr bool library_cuts_by_extent = library_loses_cut_elements;

/// May the library cut packed bytes of a datatype anywhere, whatever datatype receives them? `aligned`: does every
/// basic element lie at a multiple of its size in the packed stream?
///
/// MPICH sends long messages in pieces of a multiple of 16 bytes, and cannot receive an element that lies in two of
/// them. Open MPI can, but for elements of more than 16 bytes, of which it loses some. Both send whole elements of
/// noncontiguous messages of their own.
constexpr bool library_may_cut(bool aligned, layout::Offset widest_element) noexcept {
  return library_loses_cut_elements ? aligned : widest_element <= 16;
}

/// Does the library lose parts of what it receives in pieces into elements that lie at no multiple of their size? Of
/// one random datatype of that kind in a hundred Open MPI 5.0.11 does, and writes them elsewhere, whoever has sent the
/// message.
#if defined(GAPLESS_VARIANT_OPENMPI)
inline constexpr bool library_loses_unaligned_elements = true;
#else
inline constexpr bool library_loses_unaligned_elements = false;
#endif

/// Will the library cut a message of so many packed bytes, if it may?
constexpr bool is_long_enough_to_be_cut(std::size_t bytes) noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
  constexpr std::size_t shortest_piece = 512;
#else
  constexpr std::size_t shortest_piece = 4096;
#endif
  return bytes > shortest_piece;
}
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

}  // namespace gapless::mpi
