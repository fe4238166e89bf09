// From a datatype handle to its description, in a few nanoseconds.
//
// A datatype is analysed when that pays (early_uses.hpp). The result hangs on the datatype as an attribute, whose
// delete callback ends it when the library ends the datatype, so a handle that the library uses again is never taken
// for the old type. A small table keyed by handle stands before the attribute; MPI_Type_free takes the handle out of
// it.
//
// Readers take no lock. Records are never returned to the system, only used again: their handle is cleared first and
// set last, so a reader that finds its own handle in a record has found its own datatype's record, complete.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/hash.hpp"
#include "mpi/datatypes/early_uses.hpp"
#include "mpi/table/abi.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/message.hpp"

namespace gapless::mpi {

/// What the calls ask of a datatype.
struct TypeProperties {
  /// Buffers of this type in host memory go to the library as they are: contiguous, or not ours.
  bool plain = true;
  /// A single one of this type in host memory is better left to the library.
  bool one_is_native_in_message = true;
  bool one_is_native_in_request = true;
  bool one_is_native_in_packing = true;
  /// What a collective saves at most by packing one of this type; 0 where it is plain.
  float part_saving_ns = 0;
  /// Packed bytes of one of the type; 0 where it is not described.
  std::int64_t size = 0;
  /// The same for equal layouts, so that what has been learnt of one datatype holds for the next one that a program
  /// makes like it, and not for another one with the same handle. 0 where the type is not described.
  std::uint64_t kind = 0;
  /// Plain, and a header is whole elements of it, each of which the library moves whole: one may land in a receive of
  /// the library's own.
  bool takes_headers = false;
  /// Not plain, and the library may lose parts of one that it receives from a GPU: see would_be_lost_in_pieces().
  bool one_is_lost_beside_gpu = false;
  /// Not plain, and the library may scatter a header into its blocks: bytes of the first block that it begins with, as
  /// many as a nonce has at most. 0: it may not.
  std::uint8_t bytes_of_scattered_header = 0;
  /// Nobody can free the type, so the record stays until MPI ends.
  bool is_predefined = false;
  /// Valid, and without bytes.
  bool is_empty = false;
  /// Valid and not empty, but not understood, or of several memories: in GPU memory it cannot be served.
  bool opaque = false;
  /// Its description takes so much memory that it ends with the datatype.
  bool is_large = false;
  /// Where the first byte of a buffer lies, from its address: an absolute address where the buffer is MPI_BOTTOM. Of an
  /// opaque type the library's own word.
  std::intptr_t first_byte = 0;
  /// Null: the type is the library's business (invalid, not committed, opaque, or empty).
  std::shared_ptr<const transfer::Described> described{};
};

/// In one line of the cache.
struct alignas(64) TypeRecord : TypeProperties {
  /// number_of(handle), or no_handle.
  std::atomic<std::uintptr_t> handle;

  static constexpr std::uintptr_t no_handle = ~std::uintptr_t{0};
  template <Purpose purpose>
  bool one_is_native() const noexcept {
    if constexpr (purpose == Purpose::request) return one_is_native_in_request;
    if constexpr (purpose == Purpose::packing) return one_is_native_in_packing;
    return one_is_native_in_message;
  }
  explicit TypeRecord(TypeProperties properties = {}) noexcept
      : TypeProperties(std::move(properties)), handle(no_handle) {}
};
static_assert(sizeof(TypeRecord) == 64);

/// Is a header whole elements of the datatype, so that the library receives it as such?
inline bool takes_header_as_elements(const transfer::Described& type) noexcept {
  constexpr auto length = static_cast<layout::Offset>(transfer::headers::Header::size);
  return !type.has_long_doubles && type.elements != nullptr && type.elements->whole(length) == length;
}

namespace type_cache {

inline constexpr std::size_t ways = 4;
inline constexpr std::size_t set_bits = 8;
using Set = std::array<std::atomic<TypeRecord*>, ways>;
alignas(64) extern std::array<Set, std::size_t{1} << set_bits> sets;

inline Set& set_of(std::uintptr_t number) noexcept { return sets[slot_of(number, set_bits)]; }

/// The record of a datatype, valid while the datatype is, if the table holds it; else null.
inline const TypeRecord* find_in_table(MPI_Datatype handle) noexcept {
  const std::uintptr_t number = number_of(handle);
  for (const auto& way : set_of(number)) {
    const TypeRecord* record = way.load(std::memory_order_acquire);
    if (record != nullptr && record->handle.load(std::memory_order_acquire) == number) return record;
  }
  return nullptr;
}

/// Tells kinds of datatypes apart, for what is learnt of messages: by layout where the table holds the datatype, else
/// by handle.
inline std::uint64_t kind_of(MPI_Datatype handle) noexcept {
  const TypeRecord* const record = find_in_table(handle);
  return record != nullptr && record->kind != 0 ? record->kind : number_of(handle);
}

/// The ways past the table: attribute, else analysis. Never null.
const TypeRecord* find_slowly(MPI_Datatype handle) noexcept;

/// What every handle is that this layer has no business with, or not yet.
extern const TypeRecord not_ours;

/// The record of a datatype, which is analysed if it is not yet. Never null.
inline const TypeRecord* find(MPI_Datatype handle) noexcept {
  const TypeRecord* record = find_in_table(handle);
  return record != nullptr ? record : find_slowly(handle);
}

/// The record for a use of the datatype, or while its analysis does not pay one that says that it is the library's
/// business. Never null.
inline const TypeRecord* find_for_use(const void* memory, MPI_Count count, MPI_Datatype handle,
                                      Purpose purpose) noexcept {
  const TypeRecord* record = find_in_table(handle);
  return record != nullptr ? record : early_uses::record_for_use(memory, count, handle, purpose);
}

/// Forgets every handle in the table, so that calls after MPI_Finalize reach the library, and all predefined datatypes:
/// those that the library makes of a program's arguments end with it. Precondition: no call is under way.
void clear_table() noexcept;

/// Ends the datatype's record. For the attribute's delete callback (mpi/lifetime/runtime.cpp).
int forget(MPI_Datatype handle, int keyval, void* record, void* extra_state);

}  // namespace type_cache
}  // namespace gapless::mpi

/// For tests: gapless::mpi::type_cache::kind_of().
extern "C" [[gnu::visibility("default")]] std::uint64_t gapless_kind_of_datatype(MPI_Datatype handle);
