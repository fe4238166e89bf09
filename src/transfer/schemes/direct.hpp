// direct: the sender packs into exported memory of its own GPU, a header names the memory, and the receiver's GPU
// unpacks from there. No byte passes through host memory. Where the receiver's GPU does not reach that memory, or the
// receiver uses no GPU, the sender packs into page-locked memory of the host, from which the receiver's GPU or CPU
// unpacks. A message that exported memory holds as a whole is complete at its sender once it is packed: its sender
// waits for nothing. A longer message goes through a ring (transfer/rings).
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/opened_memory.hpp"
#include "model/measured.hpp"
#include "transfer/headers/exported/exported_pool.hpp"
#include "transfer/headers/header.hpp"
#include "transfer/headers/inbox.hpp"
#include "transfer/operation.hpp"
#include "transfer/report/report.hpp"
#include "transfer/rings/outgoing.hpp"

namespace gapless::transfer::schemes {

/// Messages of at least so many packed bytes may go direct.
inline constexpr std::size_t least_direct_bytes = 512;

/// In a header: packed bytes in memory that the sender's process exports.
struct ExportedWay {
  static constexpr headers::WayKind kind = headers::WayKind::exported;
  device::MemoryHandle memory;
  std::uint64_t address = 0;  ///< in the sender
  std::int32_t rank = -1;     ///< of the process whose inbox has the words of the segments
  std::uint32_t segment = 0;  ///< the first segment
  rings::Ring ring;           ///< of a message that goes through a ring; else without sections
};

/// One message on its sender's side. The destructor of a message that is not released takes the segments back; that of
/// a released one that goes through a ring completes the message.
class DirectOffer {
 public:
  DirectOffer() noexcept = default;
  ~DirectOffer() { withdraw(); }
  DirectOffer(const DirectOffer&) = delete;
  DirectOffer& operator=(const DirectOffer&) = delete;

  /// Packs the whole buffer into segments, and adds the segments to the header; or adds a ring, if the memory
  /// `may_stay` until ring() is over. A message of at most `packed_later` bytes is left to pack_in(). False, and
  /// nothing is offered, where the peer has not accepted the pool, or no segments are free now.
  bool secure(const Buffer& buffer, headers::Inbox& inbox, bool may_stay, std::size_t packed_later,
              headers::Header& header) noexcept;
  /// Offers a ring in memory of the host, for a long message in host memory, to a receiver whose GPU or CPU unpacks
  /// from there.
  bool secure_from_host(const Buffer& buffer, headers::Inbox& inbox, headers::Header& header) noexcept;
  /// Takes a few segments for later, when other messages may have taken all: for the buffer as a whole, or for a ring.
  /// False where there are none. Precondition: the pool is there for the buffer's GPU.
  bool keep_room(const Buffer& buffer, headers::Inbox& inbox) noexcept;
  /// Offers the buffer in the kept segments: packed, or through a ring. False where the GPU fails.
  bool use_room(headers::Header& header) noexcept;
  bool has_room_for_whole() const noexcept { return pool_ != nullptr; }
  /// Begins to pack a message that goes through a ring.
  void pack() noexcept;
  bool is_to_be_packed() const noexcept { return pool_ != nullptr && !is_packed_; }
  /// Has the batch pack the message. pack_alone() packs after a batch that has failed.
  void pack_in(Batch& batch) noexcept;
  Result pack_alone() noexcept;
  /// To be called when the header has been sent: the receiver lets go of the segments from now on.
  void hand_over() noexcept;
  void withdraw() noexcept;
  /// The predicted time of the whole message, in nanoseconds. Precondition: the message is offered.
  double predicted_ns() const noexcept;
  /// The message under way, where it goes through a ring; else null.
  rings::Outgoing* ring() const noexcept { return ring_.get(); }

 private:
  /// A pool that the peer has accepted, and how far the peer's GPU is from the pool. Null where another way is better.
  struct Accepted {
    headers::ExportedPool* pool = nullptr;
    model::Pair pair = model::Pair::peer_gpu;
  };
  static Accepted accepted_by(headers::Inbox& inbox, const Buffer& buffer) noexcept;
  bool secure_whole(const Buffer& buffer, headers::ExportedPool& pool, std::size_t packed_later,
                    headers::Header& header) noexcept;
  static ExportedWay way_of(const headers::ExportedPool& pool, headers::SegmentRun run,
                            const rings::Ring& ring) noexcept;
  pack::Job job() const noexcept;
  bool secure_ring(const Buffer& buffer, headers::Inbox& inbox, headers::ExportedPool& pool, std::size_t section_bytes,
                   headers::Header& header) noexcept;

  rings::OwnedOutgoing ring_;
  bool is_packing_ = false, is_packed_ = false, is_handed_over_ = false;
  headers::ExportedPool* pool_ = nullptr;
  headers::SegmentRun run_;
  Buffer buffer_{};
  model::Pair pair_ = model::Pair::peer_gpu;
  double packing_ns_ = untimed_ns;
};

/// One message on its receiver's side.
class DirectFetch {
 public:
  DirectFetch() noexcept = default;
  ~DirectFetch() { end(); }
  DirectFetch(const DirectFetch&) = delete;
  DirectFetch& operator=(const DirectFetch&) = delete;

  /// Has the batch unpack the first `bytes` bytes into GPU memory. A message through a ring, or into memory of the
  /// host, is unpacked on return.
  Result begin(const headers::Header& header, const ExportedWay& way, const Buffer& into, std::size_t bytes,
               Batch& batch) noexcept;
  /// Copies the first `bytes` bytes, packed, into memory that the CPU reaches, page-locked or not. Done on return.
  Result copy(const headers::Header& header, const ExportedWay& way, std::byte* into, std::size_t bytes) noexcept;
  /// Gives the sender's segments back: their bytes are not needed any more.
  void end() noexcept;

 private:
  /// Copies the bytes into host memory, and unpacks from there. Done on return.
  Result begin_by_host(const headers::Header& header, const ExportedWay& way, const Buffer& into,
                       std::size_t bytes) noexcept;
  /// Maps the memory of the bytes for that GPU, or for the CPU (no_gpu). False where mapping is refused.
  bool map(const ExportedWay& way, int device) noexcept;
  /// The address of the packed bytes, or of the ring, for that GPU, or for the CPU; null after a failure.
  std::byte* open(const ExportedWay& way, std::size_t bytes, int device) noexcept;
  /// Calls fetch(the ring mapped for that GPU).
  template <class Fetch>
  Result fetch_ring(const headers::Header& header, const ExportedWay& way, int device, Fetch fetch) noexcept;

  device::OpenedMemory::Use use_;
  std::atomic<std::uint8_t>* word_ = nullptr;
};

/// Fetches nothing, and gives the segments back to the sender.
void release_exported(const ExportedWay& way) noexcept;

}  // namespace gapless::transfer::schemes
