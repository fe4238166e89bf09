// The (address, count, datatype) of a call, and whether it is this layer's business.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "mpi/abi.hpp"
#include "mpi/type_cache.hpp"
#include "transfer/statistics.hpp"
#include "transfer/transfer.hpp"

namespace gapless::mpi {

/// Do native messages count too? Then none goes straight through. Set when the variant is opened.
extern bool counts_native_messages;

/// The question every call asks first, and mostly the last one: a few nanoseconds.
inline bool goes_straight_through(MPI_Datatype datatype) noexcept {
  return type_cache::find(datatype)->plain && !device::in_use() && !counts_native_messages;
}

struct UserBuffer {
  /// Described unless `type` is null: then the buffer is empty, or the datatype is the library's business.
  transfer::Buffer buffer{};
  /// Keeps the description although another thread frees the datatype during the call, which MPI allows.
  std::shared_ptr<const transfer::Described> description;
  /// The datatype is valid and not understood; only `buffer.location` is known.
  bool opaque = false;

  bool is_described() const noexcept { return buffer.type != nullptr; }
  bool is_gpu_memory() const noexcept { return buffer.location.kind == device::MemoryKind::device; }
};

/// What the arguments name. Whatever might be the caller's mistake is left undescribed, so that the library raises its own
/// error. A null buffer is MPI_BOTTOM where the datatype carries absolute addresses, and a mistake where it does not.
UserBuffer identify(const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept;

/// Whose business one side of a message is.
enum class Owner {
  library,   ///< the call goes to the library as it came
  ours,      ///< to be moved by transfer
  unserved,  ///< GPU memory that neither can read
};

Owner owner_of(const UserBuffer& user) noexcept;

/// Counts a message that goes to the library as it came.
void record_native(MPI_Count count, MPI_Datatype datatype) noexcept;

}  // namespace gapless::mpi
