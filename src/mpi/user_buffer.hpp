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

/// An address that the program need not be able to read.
inline const void* address_of(const void* memory, std::intptr_t offset) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(memory) + static_cast<std::uintptr_t>(offset));
}

inline bool is_gpu_memory(const void* memory) noexcept {
  return device::locate(memory).kind == device::MemoryKind::device;
}

/// The question every call asks first, and mostly the last one: a few nanoseconds, and a question to the driver where a
/// GPU is in use. `one_is_native` is what decides over a single one of a type that is not plain.
template <bool TypeRecord::*one_is_native>
inline bool goes_straight_through(const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept {
  const TypeRecord* record = type_cache::find(datatype);
  const bool is_native = record->plain || (count == 1 && record->*one_is_native);
  if (!is_native || counts_native_messages) return false;
  return !device::in_use() || !is_gpu_memory(address_of(memory, record->first_byte));
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

/// What the arguments name. Whatever might be the caller's mistake is left undescribed, so that the library raises its
/// own error. A null buffer is MPI_BOTTOM where the datatype carries absolute addresses, and a mistake where it does
/// not.
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
