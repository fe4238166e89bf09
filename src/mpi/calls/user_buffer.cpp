// Classification past the fast answer of goes_straight_through().
#include "mpi/calls/user_buffer.hpp"

#include <algorithm>

#include "mpi/lifetime/runtime.hpp"
#include "transfer/report/report.hpp"

namespace gapless::mpi {

bool counts_native_messages = false;

UserBuffer identify(const void* memory, MPI_Count count, MPI_Datatype datatype, Purpose purpose, Analysis analysis,
                    device::Locator* locator) noexcept {
  const auto locate = [locator](const void* address) {
    if (!device::in_use()) return device::Location{};
    return device::locate(address, locator);
  };
  UserBuffer user;
  if (count <= 0) return user;
  const TypeRecord* record = analysis == Analysis::now ? type_cache::find(datatype)
                                                       : type_cache::find_for_use(memory, count, datatype, purpose);
  // Predefined datatypes stay, and are not counted: threads that use one datatype would pass the count from processor
  // to processor.
  if (!record->is_predefined) user.description = record->described;
  const transfer::Described* described = record->is_predefined ? record->described.get() : user.description.get();
  user.opaque = record->opaque;
  user.is_empty_type = record->is_empty;
  const void* address = address_of(memory, record->first_byte);
  if (described == nullptr) {
    if (user.opaque) user.buffer.location = locate(address);
    return user;
  }
  layout::Offset size = 0;
  if (__builtin_mul_overflow(record->size, static_cast<layout::Offset>(count), &size)) return user;
  if (is_null_with_displacement(address)) return user;
  user.buffer = {described, count, const_cast<void*>(memory), locate(address)};
  return user;
}

bool is_refused(const void* memory, MPI_Count count, MPI_Datatype datatype) noexcept {
  if (count < 0 || !runtime::is_usable(datatype)) return true;
  if (count == 0 || memory != nullptr) return false;
  const UserBuffer user = identify(memory, count, datatype, Purpose::message, Analysis::now);
  return !user.is_described() && !user.opaque && !user.is_empty_type;
}

Owner owner_of(const UserBuffer& user) noexcept {
  if (user.is_gpu_memory() && runtime::library_reads_gpu_memory()) {
    const bool as_it_is = !user.is_described() || transfer::is_contiguous(user.buffer);
    return as_it_is ? Owner::library : Owner::ours;
  }
  if (user.is_gpu_memory()) return user.is_described() ? Owner::ours : Owner::unserved;
  return user.is_described() && !transfer::is_contiguous(user.buffer) ? Owner::ours : Owner::library;
}

namespace {

/// Of a message that may be a mistake.
std::size_t bytes_of(MPI_Count count, MPI_Datatype datatype) noexcept {
  const bool is_known = number_of(datatype) != 0 && datatype != MPI_DATATYPE_NULL && runtime::start();
  const MPI_Count size = count > 0 && is_known ? runtime::size_of(datatype) : 0;
  return static_cast<std::size_t>(std::max<MPI_Count>(size * count, 0));
}

}  // namespace

void record_native(MPI_Count count, MPI_Datatype datatype, transfer::Side side) noexcept {
  const std::size_t bytes = bytes_of(count, datatype);
  transfer::record(transfer::Scheme::native, bytes);
  transfer::report_native(bytes, side);
}

void take_back_native(MPI_Count count, MPI_Datatype datatype, transfer::Side side) noexcept {
  const std::size_t bytes = bytes_of(count, datatype);
  transfer::take_back(transfer::Scheme::native, bytes);
  transfer::take_back_native(bytes, side);
}

}  // namespace gapless::mpi
