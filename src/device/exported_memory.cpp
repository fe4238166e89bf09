#include "device/exported_memory.hpp"

namespace gapless::device {

bool ExportedMemory::is_there(const Entry& entry) noexcept {
  return runtime_.allocation_number(reinterpret_cast<const void*>(entry.handle.base)) == entry.handle.number;
}

Status ExportedMemory::handle_of(const void* address, MemoryHandle& handle) noexcept {
  const std::uint64_t number = runtime_.allocation_number(address);
  if (number == 0) return Status::unsupported;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (!entry.is_used || entry.handle.number != number) continue;
    handle = entry.handle;
    return entry.status;
  }
  // The place of one that is still there is taken only where there is no other: a peer that has it mapped learns
  // nothing of its end then, and keeps it until it is the peer's oldest.
  Entry* place = nullptr;
  for (Entry& entry : entries_) {
    if (entry.is_used) continue;
    place = &entry;
    break;
  }
  if (place == nullptr) place = &entries_[next_++ % most];
  Entry fresh;
  fresh.is_used = true;
  fresh.status = runtime_.export_memory(address, fresh.handle);
  fresh.handle.number = number;
  if (fresh.status != Status::ok) fresh.handle.base = reinterpret_cast<std::uintptr_t>(address);
  *place = fresh;
  handle = fresh.handle;
  return fresh.status;
}

std::size_t ExportedMemory::take_freed(std::span<std::uint64_t> numbers) noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (Entry& entry : entries_) {
    if (!entry.is_used || is_there(entry)) continue;
    if (entry.status == Status::ok) {
      if (count == numbers.size()) return count;
      numbers[count++] = entry.handle.number;
    }
    entry.is_used = false;
  }
  return count;
}

}  // namespace gapless::device
