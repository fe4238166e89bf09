// What consecutive calls that start operations share, until the program makes another call: sends that wait, so that
// one launch packs all sends of an exchange; and the driver's answers about the memory of operations.
//
// A small message out of GPU memory does not leave in MPI_Isend, but in the next call that is not the start of another
// operation, or once there are enough of them. Its handle is that of the library's persistent request on the packed
// buffer, which is started when the buffer is packed. Sends to one destination in a communicator leave in program
// order: a send that needs no packing queues behind deferred ones.
//
// Every call that may wait for another process, or looks whether something is complete, starts what is deferred first:
// one load while nothing is. That is enough where one thread at a time calls MPI. With MPI_THREAD_MULTIPLE nothing is
// deferred: another thread may be waiting inside the library already, for an answer to the message.
//
// Memory that is given to an operation stays allocated until a call has told the program that the operation is complete
// (MPI 4.1, 3.7.2), and no such call is among these.
#pragma once

#include <cstddef>

#include "device/device.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::requests {

class Pending;

/// A larger message is not deferred, and what is deferred is started once all of it together is larger.
inline constexpr std::size_t most_deferred_bytes = std::size_t{256} << 10;
/// A message that nobody packs, for its peer reads the program's memory, is deferred up to that length where others are
/// deferred already: asking the driver about each message takes as long as a peer needs to read a megabyte.
inline constexpr std::size_t most_awaited_bytes = std::size_t{16} << 20;

/// Counts operations on GPU memory that are started in a row and that one kernel packs or unpacks together, or could.
/// As many are expected in a row as there were the last time.
struct Gathered {
  unsigned now = 0, last_time = 0;

  /// Are other operations in the row of the one that is being started?
  bool are_others() const noexcept { return now > 0 || last_time > 1; }
  void end() noexcept {
    if (now > 0) last_time = now;
    now = 0;
  }
};

namespace internal {
extern std::size_t deferred;
extern bool is_anything_shared;  ///< deferred sends, locations, or what is gathered
void end_sharing() noexcept;
}  // namespace internal

inline bool are_none_deferred() noexcept { return internal::deferred == 0; }

/// May sends be deferred in this program?
bool may_defer() noexcept;

/// The row ends: packs and starts all deferred sends, and forgets locations. Where that fails, the call that completes
/// the request says so.
inline void start_deferred() noexcept {
  if (internal::is_anything_shared) [[unlikely]]
    internal::end_sharing();
}

/// Packs and starts all deferred sends amid a row: locations stay.
void start_deferred_so_far() noexcept;

/// Locates the memory of an operation that is being started and ends in a later call. Null where calls share nothing.
device::Locator* shared_locator() noexcept;
/// Is that memory of such an operation a GPU's?
inline bool is_on_gpu(const void* address) noexcept {
  return device::locate(address, shared_locator()).kind == device::MemoryKind::device;
}
/// An operation whose memory has been located is not started: its memory may be freed at once.
void forget_locations() noexcept;

/// Counted in programs that may defer sends.
extern Gathered gathered_sends, gathered_receives;
/// One more operation of that row is being started.
inline void count(Gathered& gathered) noexcept {
  ++gathered.now;
  internal::is_anything_shared = true;
}

/// Is a send to that destination deferred?
bool is_deferred_to(MPI_Comm communicator, int destination) noexcept;

/// Defers an outstanding send, of which `bytes` are to be packed.
void defer(Pending* pending, MPI_Comm communicator, int destination, std::size_t bytes) noexcept;

}  // namespace gapless::mpi::requests
