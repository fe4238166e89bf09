// Staged one-sided calls. The staged memory of a call lives until the synchronisation, or the request, that completes
// the call at its origin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi/calls/staged/staged_memory.hpp"
#include "mpi/requests/work.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::one_sided {

struct Operation {
  StagedMemory memory;
  MPI_Win window{};
  int target = 0;
  std::uint64_t number = 0;  ///< in the order in which operations have begun
  bool has_request = false;  ///< a request owns the operation
  /// The place in a list of operations under way: the next one, and the pointer to this one; null outside the list.
  struct Links {
    Operation* next = nullptr;
    Operation** place = nullptr;
  };
  Links by_window;  ///< among the window's
  Links by_target;  ///< among the window's with that target
};

/// Is that no window? The library refuses the call. MPICH returns MPI_SUCCESS all the same once the program's error
/// handler has returned, and the handler of no window cannot be put aside meanwhile. Open MPI needs no such care.
inline bool is_none([[maybe_unused]] MPI_Win window) noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
  return false;
#else
  return window == MPI_WIN_NULL;
#endif
}

/// The library has begun the operation, on that window and target.
void begin(std::unique_ptr<Operation> operation, MPI_Win window, int target) noexcept;

/// An operation under a request. A synchronisation of the window completes the operation as well; the request has
/// nothing left to do then.
class Requested final : public requests::Work {
 public:
  Requested() noexcept { operation_.has_request = true; }
  ~Requested() override;

  StagedMemory& memory() noexcept { return operation_.memory; }
  /// The library has begun the operation, on that window and target.
  void begin(MPI_Win window, int target) noexcept;
  int finish(ReceivedStatus&) noexcept override;

 private:
  bool take_off_list() noexcept;

  Operation operation_;
  bool is_over_ = false;
};

/// Operations that neither their windows nor their requests have completed.
std::size_t how_many() noexcept;

}  // namespace gapless::mpi::one_sided

/// For tests: operations that synchronisations have looked at.
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_operations_looked_at();
