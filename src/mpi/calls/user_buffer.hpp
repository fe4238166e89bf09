// The (address, count, datatype) of a call, and whose business this buffer is.
#pragma once

#include <limits>
#include <memory>

#include "device/device.hpp"
#include "mpi/datatypes/type_cache.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/message.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::mpi {

/// Do statistics count native messages, too? Then no message goes straight through. Set when the variant is opened.
extern bool counts_native_messages;

/// Adds as integers, because the program need not have memory at `memory` or at the result.
inline const void* address_of(const void* memory, std::intptr_t offset) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(memory) + static_cast<std::uintptr_t>(offset));
}

inline bool is_gpu_memory(const void* memory) noexcept {
  return device::locate(memory).kind == device::MemoryKind::device;
}

/// Linux maps nothing below vm.mmap_min_addr, and nothing of a program in the upper half of all addresses: an address
/// there is a null pointer with a small or a negative displacement.
inline bool is_null_with_displacement(const void* address) noexcept {
  constexpr std::intptr_t lowest = 65536;
  return reinterpret_cast<std::intptr_t>(address) < lowest;
}

inline constexpr MPI_Count any_bytes = std::numeric_limits<MPI_Count>::max();

/// Does the buffer go to the library as it came? Every call asks this first, and mostly nothing else: a few
/// nanoseconds, and where a GPU is in use a question to the driver, by `is_on_gpu(address)`. A buffer of more than
/// `most_bytes` does not go straight through.
template <Purpose purpose, MPI_Count most_bytes = any_bytes, class IsOnGpu = decltype(&is_gpu_memory)>
inline bool goes_straight_through(const void* memory, MPI_Count count, MPI_Datatype datatype,
                                  IsOnGpu is_on_gpu = is_gpu_memory) noexcept {
  if (counts_native_messages) return false;
  const TypeRecord* record = type_cache::find_for_use(memory, count, datatype, purpose);
  const bool is_native = record->plain || (count == 1 && record->one_is_native<purpose>());
  if (!is_native) return false;
  if constexpr (most_bytes != any_bytes) {
    // The product of two numbers of at most `most_bytes` does not overflow.
    if (count > most_bytes || record->size > most_bytes || count * record->size > most_bytes) return false;
  }
  if (!device::in_use()) return true;
  return !record->one_is_lost_beside_gpu && !is_on_gpu(address_of(memory, record->first_byte));
}

/// A quicker question, which asks nobody: true only if the buffer has at most `most_bytes` and goes straight through.
template <Purpose purpose>
inline bool goes_straight_through_at_a_glance(MPI_Count count, MPI_Datatype datatype, MPI_Count most_bytes) noexcept {
  if (counts_native_messages || device::may_be_in_use()) return false;
  const TypeRecord* record = type_cache::find_in_table(datatype);
  if (record == nullptr) return early_uses::count_use(count, datatype, most_bytes);
  return record->plain || (count == 1 && record->one_is_native<purpose>());
}

struct UserBuffer {
  /// The buffer, described unless `type` is null: then the buffer is empty, or the datatype is the library's business.
  transfer::Buffer buffer{};
  /// Keeps the description although another thread frees the datatype during the call, which MPI allows.
  std::shared_ptr<const transfer::Described> description;
  /// The datatype is valid and opaque; only `buffer.location` is known.
  bool opaque = false;
  /// The datatype is valid and has no bytes, and the count is not 0.
  bool is_empty_type = false;

  bool is_described() const noexcept { return buffer.type != nullptr; }
  bool is_gpu_memory() const noexcept { return buffer.location.kind == device::MemoryKind::device; }
};

enum class Analysis : std::uint8_t { when_it_pays, now };

/// The buffer that the arguments name. A buffer that might be the caller's mistake is left undescribed, so that the
/// library raises its own error. (A null address is MPI_BOTTOM where the datatype has absolute addresses, else a
/// mistake.) A host buffer of a datatype whose analysis does not pay yet is left undescribed as well, unless `analysis`
/// is `now`. `locator` is for calls with several buffers.
UserBuffer identify(const void* memory, MPI_Count count, MPI_Datatype datatype, Purpose purpose = Purpose::message,
                    Analysis analysis = Analysis::when_it_pays, device::Locator* locator = nullptr) noexcept;

/// Does the library refuse such a buffer, to send or to receive, before it looks at any message?
bool is_refused(const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept;

/// Can the CPU copy all of one buffer straight into the other?
inline bool can_be_copied_on_host(const UserBuffer& from, const UserBuffer& to) noexcept {
  return from.is_described() && to.is_described() && from.buffer.size() == to.buffer.size() &&
         from.buffer.location.is_cpu_addressable() && to.buffer.location.is_cpu_addressable();
}

/// Whose business one side of a message is.
enum class Owner {
  library,   ///< the call goes to the library as it came
  ours,      ///< gapless may move it, if the choice says so (Side::packs())
  unserved,  ///< GPU memory that neither the library nor gapless can read
};

Owner owner_of(const UserBuffer& user) noexcept;

/// Counts a message that goes to the library as it came.
void record_native(MPI_Count count, MPI_Datatype datatype, transfer::Side side) noexcept;
/// Undoes record_native() with the same arguments.
void take_back_native(MPI_Count count, MPI_Datatype datatype, transfer::Side side) noexcept;

}  // namespace gapless::mpi
