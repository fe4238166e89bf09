// What this layer holds of the MPI library while it is initialised, and when that begins and ends.
//
// Set-up happens inside MPI_Init, or at first use where MPI was initialised past us (some Fortran bindings) and where
// the program has opened a session only. The end comes through an attribute of MPI_COMM_SELF, which MPI_Finalize
// deletes first, whichever binding calls it, and without a world when the last session is closed. Before and after,
// every call goes to the library.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>

#include "mpi/table/abi.hpp"

namespace gapless::mpi::runtime {

/// True while the layer works; sets it up where MPI is initialised and it does not yet.
bool start() noexcept;

/// A communicator of this process alone, which returns errors. Precondition: start() was true.
MPI_Comm own_communicator() noexcept;

/// Lets the library make progress, whatever it does that in. Precondition: start() was true.
void make_progress() noexcept;

/// Has the library make progress now and then, until is_over() says so.
template <class IsOver>
void make_progress_until(IsOver is_over) noexcept {
  constexpr unsigned looks = 16;  // take about as long as the library's progress
  for (unsigned times = 1; !is_over(); ++times) {
    if (times % looks != 0) continue;
    make_progress();
    ::sched_yield();
  }
}

/// Keyval of the datatype attribute. Precondition: start() was true.
int type_keyval() noexcept;

/// Does the library accept the datatype: a valid handle, committed? Asked so that no error handler of the program runs.
bool is_usable(MPI_Datatype handle) noexcept;

/// Packed bytes of one of the datatype; negative where the library does not say, or does not accept the handle. Asked
/// so that no error handler of the program runs. Cheaper than is_usable(), and an uncommitted datatype has a size.
MPI_Count size_of(MPI_Datatype handle) noexcept;

/// The communicator whose handler errors of no object go to: the world's, or without a world one that returns them.
MPI_Comm communicator_for_errors() noexcept;

namespace internal {
extern std::atomic<bool> multithreaded;
}
/// May several threads of the program call MPI at the same time?
inline bool is_multithreaded() noexcept { return internal::multithreaded.load(std::memory_order_relaxed); }

/// Is this the only process of MPI_COMM_WORLD? False without a world.
bool is_alone() noexcept;

/// What the library says of its version.
std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> library_version() noexcept;

/// Can the library itself read GPU memory? Then calls we do not serve may have it.
bool library_reads_gpu_memory() noexcept;

}  // namespace gapless::mpi::runtime
