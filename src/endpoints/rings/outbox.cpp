#include "endpoints/rings/outbox.hpp"

#include <bit>

namespace gapless::mpi::endpoints {

/// As many bits, from the lowest on, as the bytes need units.
std::uint64_t Outbox::units_of(MPI_Count bytes) noexcept {
  const MPI_Count units = (bytes + OutboxMemory::unit_bytes - 1) / OutboxMemory::unit_bytes;
  return (std::uint64_t{1} << units) - 1;
}

/// The lowest, for what was used last is in the processor's cache.
int Outbox::find(MPI_Count bytes) const noexcept {
  std::uint64_t begins = free_;  // bit i: the units from i on are free, as many as have been looked at
  for (int units = std::popcount(units_of(bytes)), half; units > 1; units -= half) {
    half = units / 2;
    begins &= begins >> half;
  }
  return begins == 0 ? -1 : std::countr_zero(begins);
}

void Outbox::occupy(int unit, MPI_Count bytes) noexcept {
  memory_->taken[static_cast<std::size_t>(unit)].after_ns.store(0, std::memory_order_relaxed);
  free_ &= ~(units_of(bytes) << unit);
  under_way_ |= std::uint64_t{1} << unit;
  entries_[static_cast<std::size_t>(unit)].bytes = bytes;
  behind_ += std::popcount(units_of(bytes));
}

void Outbox::withdraw(int unit) noexcept {
  free_ |= units_of(entries_[static_cast<std::size_t>(unit)].bytes) << unit;
  under_way_ &= ~(std::uint64_t{1} << unit);
}

}  // namespace gapless::mpi::endpoints
