// MPI_Win_create, whose memory the library keeps. Where a process gives GPU memory that the library cannot read, the
// call ends in an error. If all processes of the communicator are known to run gapless, all of them get the error,
// because each would wait for the others in the library; otherwise that process alone gets the error.
#include "base/settings.hpp"
#include "mpi/calls/by_messages/agreement.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "mpi/lifetime/errors.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/requests/deferred.hpp"
#include "mpi/table/entry_points.hpp"

namespace gapless::mpi {
namespace {

using transfer::no_gpu;

int unreadable_gpu(const void* memory, MPI_Aint bytes) noexcept {
  if (bytes <= 0 || !device::in_use()) return no_gpu;
  const device::Location location = device::locate(memory);
  const bool is_on_gpu = location.kind == device::MemoryKind::device;
  return is_on_gpu && !runtime::library_reads_gpu_memory() ? location.device : no_gpu;
}

/// Sets `number` to the largest of all ranks' numbers, where all are known to run gapless. MPI_SUCCESS, or an error
/// that has been raised. Allocates nothing, because the other ranks count on this one.
int vote(MPI_Comm communicator, int& number) noexcept {
  if (by_messages::has_strangers(communicator)) return MPI_SUCCESS;
  const int mine = number;
  return native.Allreduce(&mine, &number, 1, MPI_INT, MPI_MAX, communicator);
}

template <auto create, class Unit>
int create_window(void* memory, MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm communicator, MPI_Win* window) {
  requests::start_deferred();
  if (communicator == MPI_COMM_NULL) return (native.*create)(memory, bytes, unit, info, communicator, window);
  const int gpu = unreadable_gpu(memory, bytes);
  int is_refused = gpu != no_gpu ? 1 : 0;
  if (settings().all_ranks) {
    if (const int code = vote(communicator, is_refused); code != MPI_SUCCESS) return code;
  }
  if (is_refused == 0) return (native.*create)(memory, bytes, unit, info, communicator, window);
  const char* const name = name_of<create>;
  return raise_on_communicator(communicator, gpu != no_gpu ? unserved_gpu_memory(name, gpu) : refused_elsewhere(name));
}

}  // namespace

namespace entry {

const decltype(Native::Win_create) Win_create = create_window<&Native::Win_create, int>;
GAPLESS_IF_DECLARED(Win_create_c,
                    const decltype(Native::Win_create_c) Win_create_c = create_window<&Native::Win_create_c, MPI_Aint>;)

}  // namespace entry
}  // namespace gapless::mpi
