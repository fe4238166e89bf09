// What consecutive calls that start operations share, until the program makes another call: deferred sends, so that one
// launch packs all sends of an exchange; and the driver's answers about the memory of operations.
//
// A small message out of GPU memory does not leave in MPI_Isend, but in the next call that does not start another
// operation, or once enough messages are deferred. The program's handle is that of the library's persistent request on
// the packed buffer; the request is started when the buffer is packed. Sends to one destination in a communicator leave
// in program order: a send that needs no packing queues behind deferred ones.
//
// Every call that may wait for another process, or asks whether an operation is complete, starts deferred sends first:
// one load while no send is deferred. This order is enough where one thread at a time calls MPI. With
// MPI_THREAD_MULTIPLE nothing is deferred: another thread may be waiting inside the library already, for an answer to
// the message.
//
// The driver's answers stay right as long as they are shared: memory of an operation stays allocated until a call has
// told the program that the operation is complete (MPI 4.1, 3.7.2), and no such call comes in between.
#pragma once

#include <cstddef>

#include "device/device.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::requests {

class Pending;

/// A larger message is not deferred, and deferred messages are started once all of them together are larger.
inline constexpr std::size_t most_deferred_bytes = std::size_t{256} << 10;
/// A message that nobody packs, because the peer reads the program's memory, is deferred up to this length where others
/// are deferred already: asking the driver about each message takes as long as a peer needs to read a megabyte.
inline constexpr std::size_t most_awaited_bytes = std::size_t{16} << 20;

/// Counts operations on GPU memory that are started in a row, and that one kernel packs or unpacks together, or could.
/// The next row is expected to be as long as the last one.
struct Gathered {
  unsigned now = 0, last_time = 0;

  /// Does the operation that is being started have others in its row?
  bool are_others() const noexcept { return now > 0 || last_time > 1; }
  void end() noexcept {
    if (now > 0) last_time = now;
    now = 0;
  }
};

namespace internal {
extern std::size_t deferred;
extern bool is_anything_shared;  ///< deferred sends, locations, or gathered operations
void end_sharing() noexcept;
}  // namespace internal

inline bool are_none_deferred() noexcept { return internal::deferred == 0; }

/// May sends be deferred in this program?
bool may_defer() noexcept;

/// Ends the row: packs and starts all deferred sends, and forgets locations. A failure is told by the call that
/// completes the request.
inline void start_deferred() noexcept {
  if (internal::is_anything_shared) [[unlikely]]
    internal::end_sharing();
}

/// Packs and starts all deferred sends amid a row: locations stay.
void start_deferred_so_far() noexcept;

/// Locates the memory of an operation that is being started and ends in a later call. Null where calls share nothing.
device::Locator* shared_locator() noexcept;
/// Is the memory at the address, of such an operation, a GPU's?
inline bool is_on_gpu(const void* address) noexcept {
  return device::locate(address, shared_locator()).kind == device::MemoryKind::device;
}
/// To be called where an operation whose memory has been located is not started: the program may free the memory at
/// once.
void forget_locations() noexcept;

/// Counted in programs that may defer sends.
extern Gathered gathered_sends, gathered_receives;
/// Counts an operation of that row that is being started.
inline void count(Gathered& gathered) noexcept {
  ++gathered.now;
  internal::is_anything_shared = true;
}

/// Is a send to that destination deferred?
bool is_deferred_to(MPI_Comm communicator, int destination) noexcept;

/// While the object lives, a send that is deferred sets `stays` if it turns out that the message cannot leave, because
/// nothing packs it. `stays` has to live until no send is deferred.
class NoteOfStaying {
 public:
  explicit NoteOfStaying(bool& stays) noexcept;
  ~NoteOfStaying();
  NoteOfStaying(const NoteOfStaying&) = delete;
  NoteOfStaying& operator=(const NoteOfStaying&) = delete;
};

/// Defers an outstanding send, of which `bytes` are to be packed.
void defer(Pending* pending, MPI_Comm communicator, int destination, std::size_t bytes) noexcept;

}  // namespace gapless::mpi::requests
