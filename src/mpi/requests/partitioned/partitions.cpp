#include "mpi/requests/partitioned/partitions.hpp"

#include <algorithm>
#include <new>

#include "mpi/datatypes/pieces.hpp"
#include "mpi/table/library_traits.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/packing.hpp"

namespace gapless::mpi::requests {

using transfer::Result;

Partitions::Partitions(transfer::Side side, void* memory, int partitions, MPI_Count count,
                       MPI_Datatype datatype) noexcept
    : side_(side), partitions_(partitions), count_(count) {
  MPI_Count all = 0;
  if (partitions <= 0 || count <= 0 || __builtin_mul_overflow(partitions, count, &all)) return;
  user_ = identify(memory, all, datatype, Purpose::message, Analysis::now);
  owner_ = owner_of(user_);
  each_ = user_.buffer;
  each_.count = count;
  // MPICH 5.0.2 cuts packed bytes into pieces that may end inside an element. Where elements are received, at a process
  // without gapless or into an opaque datatype, MPICH loses what follows the cut element. It cuts no element of a
  // message that is sent as elements.
  stays_whole_ = library_finds_partitions && side == transfer::Side::sender && user_.is_described() &&
                 !is_gpu_memory() &&
                 would_lose_elements(static_cast<std::size_t>(user_.buffer.size()), *user_.buffer.type);
  if (owner_ != Owner::ours) return;
  const bool is_native = transfer::choose(user_.buffer, side) == transfer::Scheme::native;
  // A sender may send bytes, which must be received as bytes.
  const bool may_be_native =
      library_finds_partitions && (side == transfer::Side::sender || transfer::is_forced(transfer::Scheme::native));
  if (user_.buffer.size() == 0 || stays_whole_ || (is_native && may_be_native)) owner_ = Owner::library;
}

void* Partitions::bytes_in_place() const noexcept {
  const bool is_derived = user_.is_described() && user_.description != nullptr;
  if (!is_derived || stays_whole_ || owner_ != Owner::library || !transfer::is_contiguous(user_.buffer)) return nullptr;
  return const_cast<void*>(address_of(user_.buffer.memory, user_.buffer.type->facts.true_lower_bound));
}

Result Partitions::reserve() noexcept {
  const auto all = static_cast<std::size_t>(user_.buffer.size());
  packed_location_ = is_gpu_memory() ? device::Location{device::MemoryKind::pinned, gpu()} : device::Location{};
  packed_ = transfer::PoolBuffer(packed_location_.kind, packed_location_.device, all);
  if (!packed_ && is_gpu_memory()) {
    packed_location_ = {};
    packed_ = transfer::PoolBuffer(packed_location_.kind, packed_location_.device, all);
  }
  if (!packed_) return is_gpu_memory() && device::runtime() == nullptr ? Result::device_failed : Result::out_of_memory;
  states_.reset(new (std::nothrow) std::atomic<State>[static_cast<std::size_t>(partitions_)] {});
  return states_ != nullptr ? Result::ok : Result::out_of_memory;
}

std::byte* Partitions::packed_at(int partition) const noexcept { return packed_.data() + partition * bytes(); }

transfer::Buffer Partitions::part(int partition) const noexcept {
  transfer::Buffer result = each_;
  const std::intptr_t offset = static_cast<std::intptr_t>(partition) * count_ * each_.type->extent;
  result.memory = const_cast<void*>(address_of(each_.memory, offset));
  return result;
}

void Partitions::start() noexcept {
  is_active_ = true;
  for (int i = 0; states_ != nullptr && i < partitions_; ++i) states_[i].store(awaited, std::memory_order_relaxed);
}

Result Partitions::pack(int partition) noexcept {
  if (side_ != transfer::Side::sender || !is_active_ || !contains(partition)) return Result::ok;
  const Result result = transfer::pack(part(partition), packed_at(partition), packed_location_);
  if (result == Result::ok) states_[partition].store(moved, std::memory_order_release);
  return result;
}

Result Partitions::unpack(int partition) noexcept {
  const Result result = transfer::unpack(part(partition), packed_at(partition), packed_location_);
  states_[partition].store(result == Result::ok ? moved : awaited, std::memory_order_release);
  return result;
}

Result Partitions::unpack(int partition, bool& is_there) noexcept {
  is_there = true;
  if (side_ != transfer::Side::receiver || !is_active_ || !contains(partition)) return Result::ok;
  State state = awaited;
  if (states_[partition].compare_exchange_strong(state, moving, std::memory_order_acquire)) return unpack(partition);
  is_there = state == moved;
  return Result::ok;
}

Result Partitions::unpack_first(MPI_Count received) noexcept {
  Result result = Result::ok;
  for (int i = 0; is_active_ && side_ == transfer::Side::receiver && i < partitions_; ++i) {
    const MPI_Count of_this = std::min<MPI_Count>(received - i * bytes(), bytes());
    if (of_this <= 0 || states_[i].load(std::memory_order_acquire) == moved) continue;
    const Result unpacked = of_this == bytes() ? unpack(i)
                                               : transfer::move_range(pack::Direction::unpack, part(i), 0, of_this,
                                                                      packed_at(i), packed_location_);
    if (unpacked != Result::ok) result = unpacked;
  }
  return result;
}

bool Partitions::are_all_moved() const noexcept {
  return std::all_of(states_.get(), states_.get() + partitions_,
                     [](const auto& state) { return state.load(std::memory_order_acquire) == moved; });
}

Result Partitions::finish() noexcept {
  // From a request's second start on, Open MPI 5.0.11 calls a send complete whose partitions are not all ready.
  if (side_ == transfer::Side::sender && !are_all_moved()) return Result::ok;
  const Result result = unpack_first(partitions_ * bytes());
  stop();
  return result;
}

}  // namespace gapless::mpi::requests
