#include "mpi/datatypes/types_by_size.hpp"

#include "base/hash.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {

bool commit(MPI_Datatype& made) noexcept {
  if (native.Type_commit(&made) == MPI_SUCCESS) return true;
  native.Type_free(&made);
  return false;
}

/// Large chunks, the rest, and behind a gap of one byte the last one if the bytes are split.
bool make_of_chunks(MPI_Datatype byte, std::size_t bytes, bool split, MPI_Datatype& made) noexcept {
  constexpr std::size_t chunk_bytes = std::size_t{1} << 30;
  const std::size_t together = split ? bytes - 1 : bytes;
  const auto chunks = static_cast<int>(together / chunk_bytes);
  const auto rest = static_cast<int>(together % chunk_bytes);
  MPI_Datatype chunk = byte;
  if (chunks > 0 && native.Type_contiguous(static_cast<int>(chunk_bytes), byte, &chunk) != MPI_SUCCESS) return false;
  const int lengths[3] = {chunks, rest, split ? 1 : 0};
  const MPI_Aint displacements[3] = {0, static_cast<MPI_Aint>(together - static_cast<std::size_t>(rest)),
                                     static_cast<MPI_Aint>(bytes)};
  const MPI_Datatype types[3] = {chunk, byte, byte};
  const bool is_made = native.Type_create_struct(3, lengths, displacements, types, &made) == MPI_SUCCESS;
  if (chunks > 0) native.Type_free(&chunk);
  return is_made && commit(made);
}

TypesBySize::Set& TypesBySize::set_of(std::size_t bytes) noexcept { return sets_[slot_of(bytes, set_bits)]; }

const TypesBySize::Slot* TypesBySize::find(std::size_t bytes) noexcept {
  for (const Slot& slot : set_of(bytes)) {
    if (slot.bytes.load(std::memory_order_acquire) == bytes) return &slot;
  }
  return nullptr;
}

MadeType TypesBySize::get(std::size_t bytes) noexcept {
  const Slot* slot = find(bytes);
  return slot != nullptr ? MadeType{slot->handle, true, false} : add(bytes);
}

[[gnu::noinline]] MadeType TypesBySize::add(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (const Slot* slot = find(bytes)) return {slot->handle, true, false};
  MadeType made;
  made.is_usable = made.is_temporary = make_(bytes, made.handle);
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

void TypesBySize::free_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (Set& set : sets_) {
    for (Slot& slot : set) {
      if (slot.bytes.exchange(0, std::memory_order_relaxed) != 0) native.Type_free(&slot.handle);
    }
  }
}

}  // namespace gapless::mpi
