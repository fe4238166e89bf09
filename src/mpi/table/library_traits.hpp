// How the two families of MPI libraries differ where the standard leaves them free, or where they are at fault. A
// variant is compiled for one family: Open MPI, or MPICH and the libraries that are made of MPICH. One place names the
// differences, so that a library of a third family needs an answer for each line here. What headers and costs it needs
// besides, CONTRIBUTING.md says ("Add an ABI").
#pragma once

#include <cstddef>
#include <string_view>

namespace gapless::mpi {

#if defined(GAPLESS_VARIANT_OPENMPI)
inline constexpr bool is_open_mpi = true;
#else
inline constexpr bool is_open_mpi = false;
#endif

/// Is the library of the family that this variant is compiled for? `name` is the first line of what
/// MPI_Get_library_version says: further lines may name a library that is wrapped. Open MPI's symbols tell its family
/// well enough. A library of any other name may have other values for MPI_INT, and other faults than MPICH's.
constexpr bool is_of_this_family(std::string_view name) noexcept {
  if (is_open_mpi) return true;
  for (const std::string_view kin : {"MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation"}) {
    if (name.find(kin) != std::string_view::npos) return true;
  }
  return false;
}

// What becomes of elements.

/// Does the library lose elements of any size that lie in two pieces of a long message?
inline constexpr bool library_loses_cut_elements = !is_open_mpi;

/// The longest message that the library never cuts into pieces, in bytes.
inline constexpr std::size_t longest_uncut_message = is_open_mpi ? 512 : 4096;

/// Does a process cut what it sends on in a collective as the extent of its own datatype says? Then all processes need
/// one extent, wherever some pack. MPICH does, in the ring of MPI_Allgatherv.
inline constexpr bool library_cuts_by_extent = !is_open_mpi;

/// Does the library lose parts of what it receives in pieces into elements that lie at no multiple of their size? Of
/// one random datatype of that kind in a hundred Open MPI 5.0.11 does, and writes them elsewhere, whoever has sent the
/// message.
inline constexpr bool library_loses_unaligned_elements = is_open_mpi;

/// Does the library lose the end of what a process sends to itself in a collective? Open MPI 5.0.11 moves contiguous
/// elements with gaps between them in pieces, and loses the last one where that holds nothing but the end of an element
/// that an earlier one has begun.
inline constexpr bool library_loses_ends_of_own_parts = is_open_mpi;
inline constexpr std::size_t piece_of_own_part = std::size_t{64} << 10;

/// Does a process between the leaves of a gather and its root keep the parts of others as far apart as the extent of
/// its own datatype says? Parts that are longer overwrite each other. Open MPI 5.0.11 does in MPI_Gather.
inline constexpr bool library_gathers_by_extent = is_open_mpi;

/// Does the library lose packed bytes that it receives into structs whose fields lie one after the other and not at the
/// struct's beginning? MPICH 5.0.2 reads long contiguous messages out of the sender's memory into a list of the
/// receiver's blocks. The list is made as long as there are fields, and set for one block. It ends in unset addresses.
inline constexpr bool library_miscounts_shifted_structs = !is_open_mpi;

/// Does a receive end in the middle of a basic element where the message does? MPICH receives whole elements of short
/// messages, and returns an error for the rest.
inline constexpr bool library_receives_parts_of_elements = is_open_mpi;

/// Does the library find the partitions of datatypes with gaps? Open MPI 5.0.11 takes them from wrong places: it counts
/// bytes where extents count.
inline constexpr bool library_finds_partitions = !is_open_mpi;

/// Does too long a contiguous message overrun its receive? Open MPI 5.0.11 reads as many bytes as are sent.
inline constexpr bool library_overruns_contiguous_receives = is_open_mpi;

/// Does a short contiguous message of a process to itself that is too long for its receive go unnoticed, with
/// MPI_SUCCESS? Open MPI 5.0.11 takes the number of pieces for the length of what it receives, up to 512 bytes.
inline constexpr bool library_overlooks_truncation_by_itself = is_open_mpi;

// What statuses and error handlers are told.

/// Does a call that has failed return the error once the program's own error handler has returned? MPICH 5.0.2 returns
/// MPI_SUCCESS.
inline constexpr bool library_returns_errors_after_handlers = is_open_mpi;

/// Does the library tell what an exchange under one request has received? MPICH 5.0.2 gives a status without values.
inline constexpr bool library_gives_statuses_of_exchanges = is_open_mpi;

/// Do calls on several requests say in the statuses what became of persistent ones? MPICH 5.0.2 leaves MPI_ERROR as it
/// finds it.
inline constexpr bool library_gives_errors_of_persistent_requests = is_open_mpi;

/// Does a call that completes an array of requests, or that looks at a request, name the communicator of a message that
/// is too long? MPICH 5.0.2 names none.
inline constexpr bool library_names_communicators_of_truncation = is_open_mpi;

/// Do MPI_Mrecv, and MPI_Wait on a message that was there first, name the message's communicator where they fail? MPICH
/// 5.0.2 does so only where a call completes the request of a matched message.
inline constexpr bool library_names_communicators_of_matched_messages = is_open_mpi;

}  // namespace gapless::mpi
