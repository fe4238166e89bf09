// Datatypes for packed bytes that no count of MPI_PACKED names: split ones, and more bytes than an int counts.
#include "mpi/calls/packed_type.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "model/model.hpp"
#include "mpi/lifetime/runtime.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

// Large chunks, the rest, and behind a gap of one byte the last one if the bytes are split.
bool make_type(std::size_t bytes, bool split, MPI_Datatype& type) noexcept {
  constexpr std::size_t chunk_bytes = std::size_t{1} << 30;
  const std::size_t together = split ? bytes - 1 : bytes;
  const auto chunks = static_cast<int>(together / chunk_bytes);
  const auto rest = static_cast<int>(together % chunk_bytes);
  MPI_Datatype chunk = MPI_PACKED;
  if (chunks > 0 && native.Type_contiguous(static_cast<int>(chunk_bytes), MPI_PACKED, &chunk) != MPI_SUCCESS)
    return false;
  const int lengths[3] = {chunks, rest, split ? 1 : 0};
  const MPI_Aint displacements[3] = {0, static_cast<MPI_Aint>(together - static_cast<std::size_t>(rest)),
                                     static_cast<MPI_Aint>(bytes)};
  const MPI_Datatype types[3] = {chunk, MPI_PACKED, MPI_PACKED};
  const bool made = native.Type_create_struct(3, lengths, displacements, types, &type) == MPI_SUCCESS;
  if (chunks > 0) native.Type_free(&chunk);
  if (!made) return false;
  if (native.Type_commit(&type) == MPI_SUCCESS) return true;
  native.Type_free(&type);
  return false;
}

// Split types by their size, made once. Readers take no lock: a slot's size is set last.
struct Slot {
  std::atomic<std::size_t> bytes{0};
  MPI_Datatype handle{};
};
constexpr std::size_t ways = 4, set_bits = 7;
std::array<std::array<Slot, ways>, std::size_t{1} << set_bits> split_types;
std::mutex split_types_mutex;  ///< for writers

auto& set_of(std::size_t bytes) noexcept {
  return split_types[(static_cast<std::uint64_t>(bytes) * 0x9e3779b97f4a7c15u) >> (64 - set_bits)];
}

const Slot* find_split_type(std::size_t bytes) noexcept {
  for (const Slot& slot : set_of(bytes)) {
    if (slot.bytes.load(std::memory_order_acquire) == bytes) return &slot;
  }
  return nullptr;
}

// A type that finds no place is made anew for each message: none in use is ever freed.
[[gnu::noinline]] MadeType add_split_type(std::size_t bytes) noexcept {
  const std::lock_guard lock(split_types_mutex);
  if (const Slot* slot = find_split_type(bytes)) return {slot->handle, true, false};
  MadeType made{MPI_PACKED, false, true};
  made.is_usable = make_type(bytes, true, made.handle);
  made.is_temporary = made.is_usable;
  if (!made.is_usable) return made;
  for (Slot& slot : set_of(bytes)) {
    if (slot.bytes.load(std::memory_order_relaxed) != 0) continue;
    slot.handle = made.handle;
    slot.bytes.store(bytes, std::memory_order_release);
    made.is_temporary = false;
    break;
  }
  return made;
}

}  // namespace

bool is_split(std::size_t bytes, End end) noexcept {
#if defined(GAPLESS_VARIANT_OPENMPI)
  if (bytes < 2) return false;
  if (end == End::receive) return true;
  // Networks send long contiguous messages without a copy. A short one to oneself that is too long would go unnoticed.
  return static_cast<double>(bytes) <= model::profile().host.eager_bytes || runtime::is_job_on_one_node();
#else
  static_cast<void>(bytes);
  static_cast<void>(end);
  return false;
#endif
}

MadeType make_packed_type(std::size_t bytes, bool split) noexcept {
  if (split) {
    const Slot* slot = find_split_type(bytes);
    return slot != nullptr ? MadeType{slot->handle, true, false} : add_split_type(bytes);
  }
  MadeType made{MPI_PACKED, false, false};
  made.is_usable = made.is_temporary = make_type(bytes, false, made.handle);
  return made;
}

void free_packed_type(MadeType& type) noexcept { native.Type_free(&type.handle); }

void free_split_types() noexcept {
  const std::lock_guard lock(split_types_mutex);
  for (auto& set : split_types) {
    for (Slot& slot : set) {
      if (slot.bytes.exchange(0, std::memory_order_relaxed) != 0) native.Type_free(&slot.handle);
    }
  }
}

}  // namespace gapless::mpi
