// A partitioned message of ours: the library is given a packed buffer with as many partitions as the program's. A
// partition is packed when it is ready, or unpacked when it has arrived.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi/calls/sides/packed_type.hpp"
#include "mpi/calls/user_buffer.hpp"
#include "transfer/buffers/buffers.hpp"

namespace gapless::mpi::requests {

class Partitions {
 public:
  /// `count` elements of the datatype in each partition.
  Partitions(transfer::Side side, void* memory, int partitions, MPI_Count count, MPI_Datatype datatype) noexcept;

  /// Whose business is the message? If ours, reserve() has to get the packed buffer first.
  Owner owner() const noexcept { return owner_; }
  bool is_gpu_memory() const noexcept { return user_.is_gpu_memory(); }
  int gpu() const noexcept { return user_.buffer.location.device; }
  transfer::Result reserve() noexcept;

  /// Where the bytes of contiguous memory begin, of a derived datatype that is the library's business: the library
  /// moves bytes better than elements. Null for any other memory, and for messages that go as elements so that no piece
  /// of them ends inside an element.
  void* bytes_in_place() const noexcept;

  /// The packed buffer for the library: `bytes()` of MPI_PACKED in each partition.
  void* packed() const noexcept { return packed_.data(); }
  MPI_Count bytes() const noexcept { return each_.size(); }

  void start() noexcept;
  /// Ends an active message: no partition is under way, and none is to be unpacked.
  void stop() noexcept { is_active_ = false; }
  /// Packs a partition, which is ready. Thread-safe for different partitions.
  transfer::Result pack(int partition) noexcept;
  /// Unpacks a partition that has arrived, once. `is_there`: the partition is unpacked, which is not so while another
  /// thread unpacks the partition. Thread-safe.
  transfer::Result unpack(int partition, bool& is_there) noexcept;
  /// Unpacks all that is not unpacked yet of the first `received` bytes, where no more will arrive. (Open MPI does not
  /// tell how many have.)
  transfer::Result unpack_first(MPI_Count received) noexcept;
  /// Ends a message of which all partitions have arrived, or been sent: unpacks what is not unpacked yet. A send whose
  /// partitions are not all ready goes on, whatever the library says.
  transfer::Result finish() noexcept;

 private:
  enum State : std::uint8_t { awaited, moving, moved };  ///< of a partition: moved once it is packed, or unpacked

  bool contains(int partition) const noexcept { return partition >= 0 && partition < partitions_; }
  std::byte* packed_at(int partition) const noexcept;
  transfer::Buffer part(int partition) const noexcept;
  transfer::Result unpack(int partition) noexcept;
  bool are_all_moved() const noexcept;

  transfer::Side side_;
  int partitions_;
  MPI_Count count_;
  UserBuffer user_;          ///< all partitions
  transfer::Buffer each_{};  ///< the first partition
  Owner owner_ = Owner::library;
  bool is_active_ = false;
  bool stays_whole_ = false;  ///< packed bytes could be cut inside an element, which the receiver may lose
  transfer::PoolBuffer packed_;
  device::Location packed_location_;
  std::unique_ptr<std::atomic<State>[]> states_;
};

}  // namespace gapless::mpi::requests
