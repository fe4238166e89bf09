// A partitioned message of ours: the library is given a packed buffer with as many partitions as the program's, each of
// which is packed when it is ready, or unpacked when it has arrived.
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

  /// Whose business is it? Ours only with a buffer that reserve() got.
  Owner owner() const noexcept { return owner_; }
  bool is_gpu_memory() const noexcept { return user_.is_gpu_memory(); }
  int gpu() const noexcept { return user_.buffer.location.device; }
  transfer::Result reserve() noexcept;

  /// Contiguous memory of a datatype that the program has made, which is the library's business: where its bytes begin,
  /// which the library moves better than elements. Null: any other memory, and what is sent as elements so that no
  /// piece of the message ends inside of one.
  void* bytes_in_place() const noexcept;

  /// What the library is given: `bytes()` of MPI_PACKED in each partition.
  void* packed() const noexcept { return packed_.data(); }
  MPI_Count bytes() const noexcept { return each_.size(); }

  void start() noexcept;
  /// Nothing is under way, and nothing has arrived.
  void stop() noexcept { is_active_ = false; }
  /// The partition is ready. Thread-safe for different ones.
  transfer::Result pack(int partition) noexcept;
  /// The partition has arrived: unpacks it, once. `is_there` tells whether that is done: not where another thread is at
  /// it. Thread-safe.
  transfer::Result unpack(int partition, bool& is_there) noexcept;
  /// So many bytes have arrived, and no more will: unpacks what is not unpacked yet. Open MPI does not tell how many.
  transfer::Result unpack_first(MPI_Count received) noexcept;
  /// All have arrived, or been sent.
  transfer::Result finish() noexcept;

 private:
  enum State : std::uint8_t { awaited, moving, moved };

  bool contains(int partition) const noexcept { return partition >= 0 && partition < partitions_; }
  std::byte* packed_at(int partition) const noexcept;
  transfer::Buffer part(int partition) const noexcept;
  transfer::Result unpack(int partition) noexcept;

  transfer::Side side_;
  int partitions_;
  MPI_Count count_;
  UserBuffer user_;          ///< all partitions
  transfer::Buffer each_{};  ///< the first of them
  Owner owner_ = Owner::library;
  bool is_active_ = false;
  bool stays_whole_ = false;  ///< packed bytes would be cut where the receiver cannot put them together
  transfer::PoolBuffer packed_;
  device::Location packed_location_;
  std::unique_ptr<std::atomic<State>[]> states_;
};

}  // namespace gapless::mpi::requests
