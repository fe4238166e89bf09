// Memory for the packed bytes of a GPU's messages: GPU memory that the fabric reaches, so that no CPU copies the bytes,
// else page-locked memory.
//
// Registering GPU memory takes longer than moving a message, so buffers stay registered for later messages. Buffers are
// whole pages of a GPU, which are whole pages of the host too. The bytes of all buffers, used or not, are bounded. A
// fabric that refuses the first buffer is not asked again; where a later buffer is refused, its message goes by
// page-locked memory.
//
// Used under the lock of the endpoint's owner. Nothing throws but the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/remote/endpoint.hpp"
#include "transfer/buffers/buffers.hpp"

namespace gapless::transfer::rdma {

/// The packed bytes of one message.
struct PackedBytes {
  PoolBuffer buffer;
  fabric::Region region{};  ///< of GPU memory; page-locked memory is not registered

  explicit operator bool() const noexcept { return static_cast<bool>(buffer); }
  bool is_on_gpu() const noexcept { return buffer && region.handle != nullptr; }
};

class PackedBuffers {
 public:
  explicit PackedBuffers(fabric::Endpoint& endpoint);
  ~PackedBuffers() { clear(); }
  PackedBuffers(const PackedBuffers&) = delete;
  PackedBuffers& operator=(const PackedBuffers&) = delete;

  /// Registered GPU memory of at least `bytes` bytes; empty where the fabric does not reach the GPU's memory, or there
  /// is no more. To be called by threads that need page-locked memory next: page-locked buffers that have been given
  /// back go to the pools of the calling thread.
  PackedBytes take(int device, std::size_t bytes) noexcept;
  /// Gives back the buffer of a message that is over. `is_reached`: the fabric may still write to the buffer or read
  /// from it.
  void give(PackedBytes&& packed, bool is_reached) noexcept;
  /// Ends the registrations of all buffers that have been given back, and frees the buffers.
  void clear() noexcept;

  /// Buffers registered so far.
  std::uint64_t registrations() const noexcept { return registrations_; }
  /// Registered buffers that have not been given back.
  std::size_t held() const noexcept { return held_; }

 private:
  enum class Gpus : std::uint8_t { untried, reached, refused };

  bool make_room(std::size_t bytes) noexcept;
  PackedBytes make(int device, std::size_t bytes) noexcept;
  void deregister(PackedBytes& packed) noexcept;

  fabric::Endpoint& endpoint_;
  std::vector<PackedBytes> free_;  ///< the one that was given back last stands last
  std::size_t registered_bytes_ = 0;
  std::size_t held_ = 0;
  std::uint64_t registrations_ = 0;
  Gpus gpus_ = Gpus::untried;
};

}  // namespace gapless::transfer::rdma
