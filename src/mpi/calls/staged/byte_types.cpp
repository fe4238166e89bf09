#include "mpi/calls/staged/byte_types.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "mpi/table/native.hpp"

namespace gapless::mpi {
namespace {

// Readers take no lock: a slot's size is set last. None is ever freed while the library works.
struct Slot {
  std::atomic<std::size_t> bytes{0};
  MPI_Datatype handle{};
};
constexpr std::size_t ways = 4, set_bits = 7;
std::array<std::array<Slot, ways>, std::size_t{1} << set_bits> slots;
std::mutex slots_mutex;  ///< for writers

auto& set_of(std::size_t bytes) noexcept {
  return slots[(static_cast<std::uint64_t>(bytes) * 0x9e3779b97f4a7c15u) >> (64 - set_bits)];
}

const Slot* find(std::size_t bytes) noexcept {
  for (const Slot& slot : set_of(bytes)) {
    if (slot.bytes.load(std::memory_order_acquire) == bytes) return &slot;
  }
  return nullptr;
}

bool make(std::size_t bytes, MPI_Datatype& made) noexcept {
  if (native.Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &made) != MPI_SUCCESS) return false;
  if (native.Type_commit(&made) == MPI_SUCCESS) return true;
  native.Type_free(&made);
  return false;
}

/// False if all places are taken.
bool keep(std::size_t bytes, MPI_Datatype handle) noexcept {
  for (Slot& slot : set_of(bytes)) {
    if (slot.bytes.load(std::memory_order_relaxed) != 0) continue;
    slot.handle = handle;
    slot.bytes.store(bytes, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace

ByteType::ByteType(layout::Offset size) noexcept {
  if (size <= 0 || size > std::numeric_limits<int>::max()) return;
  const auto bytes = static_cast<std::size_t>(size);
  const Slot* slot = find(bytes);
  if (slot == nullptr) {
    const std::lock_guard lock(slots_mutex);
    slot = find(bytes);
    if (slot == nullptr) {
      is_usable_ = make(bytes, handle_);
      is_temporary_ = is_usable_ && !keep(bytes, handle_);
      return;
    }
  }
  handle_ = slot->handle;
  is_usable_ = true;
}

ByteType::~ByteType() {
  if (is_temporary_) native.Type_free(&handle_);
}

ByteType::ByteType(ByteType&& other) noexcept
    : handle_(other.handle_), is_usable_(other.is_usable_), is_temporary_(std::exchange(other.is_temporary_, false)) {}

ByteType& ByteType::operator=(ByteType&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(is_usable_, other.is_usable_);
  std::swap(is_temporary_, other.is_temporary_);
  return *this;
}

void free_byte_types() noexcept {
  const std::lock_guard lock(slots_mutex);
  for (auto& set : slots) {
    for (Slot& slot : set) {
      if (slot.bytes.exchange(0, std::memory_order_relaxed) != 0) native.Type_free(&slot.handle);
    }
  }
}

}  // namespace gapless::mpi
