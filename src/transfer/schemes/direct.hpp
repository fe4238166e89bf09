// direct: the sender packs into exported memory of its own GPU, a header names it, and the receiver's GPU unpacks from
// there. No byte passes through host memory. The sender is complete once it has packed: it waits for nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/opened_memory.hpp"
#include "transfer/headers/exported_pool.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/operation.hpp"

namespace gapless::transfer::schemes {

/// Messages of so many packed bytes may go direct.
inline constexpr std::size_t least_direct_bytes = 1024;

/// In a header: packed bytes in memory that the sender's process exports.
struct ExportedWay {
  static constexpr headers::WayKind kind = headers::WayKind::exported;
  device::MemoryHandle memory;
  std::uint64_t address = 0;  ///< the sender's
  std::int32_t rank = -1;     ///< whose inbox has the words of the segments
  std::uint32_t segment = 0;  ///< the first
};

/// One message on its sender's side. Unless it is released, its destructor takes the segments back.
class DirectOffer {
 public:
  DirectOffer() noexcept = default;
  ~DirectOffer() { withdraw(); }
  DirectOffer(const DirectOffer&) = delete;
  DirectOffer& operator=(const DirectOffer&) = delete;

  /// Packs the whole buffer into segments, and adds them to the header. False, and nothing is offered, where the peer
  /// has not accepted them, or there are none free now.
  bool secure(const Buffer& buffer, headers::Inbox& inbox, headers::Header& header) noexcept;
  /// The header has been sent: the segments are the receiver's to let go of.
  void release() noexcept;
  void withdraw() noexcept;

 private:
  headers::ExportedPool* pool_ = nullptr;
  headers::SegmentRun run_;
  std::size_t bytes_ = 0;
};

/// One message on its receiver's side.
class DirectFetch {
 public:
  DirectFetch() noexcept = default;
  ~DirectFetch() { end(); }
  DirectFetch(const DirectFetch&) = delete;
  DirectFetch& operator=(const DirectFetch&) = delete;

  /// Has the batch unpack the first `bytes` bytes into GPU memory.
  Result begin(const ExportedWay& way, const Buffer& into, std::size_t bytes, Batch& batch) noexcept;
  /// Copies them into memory that every GPU of this process and the CPU reach, or the CPU alone. Done on return.
  Result copy(const ExportedWay& way, std::byte* into, std::size_t bytes) noexcept;
  /// The bytes are not needed there any more.
  void end() noexcept;

 private:
  /// Where the packed bytes are for that GPU; null after a failure.
  std::byte* open(const ExportedWay& way, std::size_t bytes, int device) noexcept;

  device::OpenedMemory::Use use_;
  std::atomic<std::uint8_t>* word_ = nullptr;
};

/// Nothing is fetched: the segments are the sender's again.
void release_exported(const ExportedWay& way) noexcept;

}  // namespace gapless::transfer::schemes
