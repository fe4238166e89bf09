// The bytes of one operation's buffer, host or GPU, in one run or not: packed, unpacked, and copied to another's.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "endpoints/delivery/operation.hpp"
#include "pack/host/engine.hpp"

namespace gapless::mpi::endpoints {

/// Of the processor, or there are none.
inline bool is_one_run(const Operation& operation) noexcept { return operation.bytes == 0 || operation.run != nullptr; }

/// One or two numbers are copied inline, since a call takes longer than their copy; many bytes as the host engine
/// copies blocks. `from` may be null if there is nothing to copy.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t word = sizeof(std::uint64_t), many = 2048;
  if (bytes >= word && bytes <= 2 * word) {
    std::uint64_t first, last;  // which overlap
    std::memcpy(&first, from, word);
    std::memcpy(&last, from + bytes - word, word);
    std::memcpy(to, &first, word);
    std::memcpy(to + bytes - word, &last, word);
  } else if (bytes >= many) {
    pack::host::copy_bytes(to, from, bytes);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

/// The bytes of plain datatypes are told without a look at their description.
inline bool is_plain(const Data& data, std::byte*& run, MPI_Count& bytes) noexcept {
  if (data.count == 0 && data.datatype != MPI_DATATYPE_NULL) {
    run = nullptr;
    bytes = 0;
    return true;
  }
  if (data.count <= 0) return false;
  const TypeRecord* const record = type_cache::find_in_table(data.datatype);
  if (record == nullptr || !record->plain || record->size == 0) return false;
  if (__builtin_mul_overflow(record->size, data.count, &bytes)) return false;
  const void* const first = address_of(data.memory, record->first_byte);
  run = static_cast<std::byte*>(const_cast<void*>(first));
  if (is_null_with_displacement(first)) return false;
  return !device::in_use() || device::locate(first).kind == device::MemoryKind::host;
}

/// Null if there is no memory.
std::unique_ptr<std::byte[]> allocate(MPI_Count bytes) noexcept;
/// The buffer's packed bytes; null if there is no memory, or they cannot be read.
std::unique_ptr<std::byte[]> packed_copy(const Operation& operation) noexcept;

// Each an error code, not raised.
int pack_all(const Operation& operation, std::byte* packed) noexcept;
int unpack_first_of_parts(const Operation& operation, const std::byte* packed, MPI_Count bytes) noexcept;
/// The first `bytes` packed bytes of the buffer get their values; no other byte changes.
inline int unpack_first(const Operation& operation, const std::byte* packed, MPI_Count bytes) noexcept {
  if (bytes == 0) return MPI_SUCCESS;
  if (!is_one_run(operation)) return unpack_first_of_parts(operation, packed, bytes);
  copy_bytes(operation.run, packed, static_cast<std::size_t>(bytes));
  return MPI_SUCCESS;
}
/// From the sender's buffer to the receiver's; both have described what they name.
int copy_between(const Operation& from, const Operation& to) noexcept;
/// Another process, which may copy some of the bytes that it lends.
struct Lender {
  pid_t process;
  int endpoints;  ///< that a process of the communicator has at most
  Loan& loan;
};
/// The first `bytes` packed bytes of the receiver's buffer are those at that address of the lender.
int copy_from_process(const Lender& lender, const std::byte* from, const Operation& to, MPI_Count bytes) noexcept;

}  // namespace gapless::mpi::endpoints
