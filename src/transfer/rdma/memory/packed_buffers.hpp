// Memory for the packed bytes of a GPU's messages: GPU memory that the fabric reaches, so that no CPU copies them, else
// page-locked memory.
//
// Registering GPU memory takes longer than moving a message, so buffers stay registered for later messages. They are
// whole pages of a GPU, which are whole pages of the host too. What there is of them, used or not, is bounded. A fabric
// that refuses the first one is not asked again; where a later one is refused, that message goes by page-locked memory.
//
// Used under the lock of whoever owns the endpoint. Nothing throws but the constructor.
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
  fabric::Region region{};  ///< of GPU memory; page-locked memory has none

  explicit operator bool() const noexcept { return static_cast<bool>(buffer); }
  bool is_on_gpu() const noexcept { return buffer && region.handle != nullptr; }
};

class PackedBuffers {
 public:
  explicit PackedBuffers(fabric::Endpoint& endpoint);
  ~PackedBuffers() { clear(); }
  PackedBuffers(const PackedBuffers&) = delete;
  PackedBuffers& operator=(const PackedBuffers&) = delete;

  /// GPU memory of at least so many bytes, registered; empty where the fabric does not reach it, or there is no more.
  /// To be called by threads that need page-locked memory next: what has been given back goes to their pools.
  PackedBytes take(int device, std::size_t bytes) noexcept;
  /// Of a message that is over. `is_reached`: something may still be under way there.
  void give(PackedBytes&& packed, bool is_reached) noexcept;
  /// Of all that has been given.
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
  std::vector<PackedBytes> free_;  ///< the one given last is the last
  std::size_t registered_bytes_ = 0;
  std::size_t held_ = 0;
  std::uint64_t registrations_ = 0;
  Gpus gpus_ = Gpus::untried;
};

}  // namespace gapless::transfer::rdma
