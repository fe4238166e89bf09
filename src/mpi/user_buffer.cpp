// Classification past the fast answer of goes_straight_through().
#include "mpi/user_buffer.hpp"

#include "mpi/runtime.hpp"

namespace gapless::mpi {

bool counts_native_messages = false;

namespace {

// No buffer lies in the first page: an address there is a null pointer with a small displacement.
constexpr std::uintptr_t first_page = 4096;

}  // namespace

UserBuffer identify(const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept {
  UserBuffer user;
  if (count <= 0) return user;
  const TypeRecord* record = type_cache::find(datatype);
  user.description = record->described;
  user.opaque = record->opaque;
  const transfer::Described* described = user.description.get();
  if (described == nullptr) {
    if (user.opaque && device::in_use()) user.buffer.location = device::locate(memory);
    return user;
  }
  layout::Offset size = 0;
  if (__builtin_mul_overflow(described->layout->size, static_cast<layout::Offset>(count), &size)) return user;
  const void* address = address_of(memory, record->first_byte);
  if (reinterpret_cast<std::uintptr_t>(address) < first_page) return user;
  user.buffer = {described, count, const_cast<void*>(memory),
                 device::in_use() ? device::locate(address) : device::Location{}};
  return user;
}

Owner owner_of(const UserBuffer& user) noexcept {
  if (user.is_gpu_memory() && runtime::library_reads_gpu_memory()) {
    const bool as_it_is = !user.is_described() || transfer::is_contiguous(user.buffer);
    return as_it_is ? Owner::library : Owner::ours;
  }
  if (user.is_gpu_memory()) return user.is_described() ? Owner::ours : Owner::unserved;
  return user.is_described() && !transfer::is_contiguous(user.buffer) ? Owner::ours : Owner::library;
}

void record_native(MPI_Count count, MPI_Datatype datatype) noexcept {
  const TypeRecord* record = type_cache::find(datatype);
  const layout::Offset size = record->described != nullptr && count > 0 ? record->described->layout->size * count : 0;
  transfer::record(transfer::Scheme::native, static_cast<std::size_t>(size));
}

}  // namespace gapless::mpi
