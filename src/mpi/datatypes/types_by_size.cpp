#include "mpi/datatypes/types_by_size.hpp"

#include <cstdint>

#include "base/hash.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi {

TypesBySize::Set& TypesBySize::set_of(std::size_t bytes) noexcept { return sets_[place_of(bytes, set_bits)]; }

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
