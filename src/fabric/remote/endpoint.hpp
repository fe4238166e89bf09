// Memory of processes of other nodes, as every RDMA fabric has it: registered regions, lists of writes that gather and
// reads that scatter, immediates, completions.
//
// An endpoint promises nothing that its fabric does not: how much one operation carries, whether writes arrive in the
// order they were posted in, how a peer names memory, and the rest are limits that the endpoint reads from its
// provider, and that callers obey.
//
// An endpoint is used by one thread at a time. Nothing here throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gapless::fabric {

/// A place in a peer's registered memory, in the fabric's own terms: a virtual address, or an offset into the region.
using RemoteAddress = std::uint64_t;

enum class Status : std::uint8_t {
  ok,
  again,        ///< the queue is full: poll, then post the rest
  refused,      ///< memory that cannot be registered
  peer_failed,  ///< the peer is gone, or cannot be reached
  failed,       ///< a wrong key, or anything else that is wrong with one operation
};

/// What the provider says it can do.
struct Limits {
  std::size_t gather_entries = 1;   ///< local pieces of one write, at most
  std::size_t scatter_entries = 1;  ///< local pieces of one read, at most
  std::size_t operation_bytes = 1;  ///< bytes of one operation, at most
  std::size_t outstanding = 1;      ///< operations posted and not completed, at most
  bool has_immediates = false;      ///< 32 bits with a write
  bool is_ordered = false;          ///< an immediate says that all earlier writes to that peer have arrived
  bool posts_lists = false;         ///< a list is handed to the hardware at once
  /// Memory that is freed and mapped again is still what the region names. Where false, a registration must end before
  /// the memory does.
  bool follows_mappings = false;
};

/// Registered memory of this process.
struct Region {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  RemoteAddress address = 0;  ///< of `memory`, as peers name it
  std::uint64_t key = 0;      ///< what peers need
  void* handle = nullptr;     ///< the endpoint's

  bool covers(const void* begin, std::size_t length) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(begin), from = reinterpret_cast<std::uintptr_t>(memory);
    return handle != nullptr && at >= from && at - from <= bytes && bytes - (at - from) >= length;
  }
};

/// Contiguous local memory, within one region.
struct Piece {
  std::byte* memory;
  std::size_t bytes;
  const Region* region;
};

enum class Opcode : std::uint8_t { write, read };

/// One operation: local pieces, in order, from or to contiguous memory of a peer.
struct Post {
  Opcode opcode = Opcode::write;
  bool has_immediate = false;   ///< of writes only
  std::uint32_t immediate = 0;  ///< what the peer's `arrived` completion will say
  RemoteAddress remote = 0;
  std::uint64_t key = 0;
  std::span<const Piece> local;
  std::uint64_t context = 0;  ///< what the `posted` completion will say
};

struct Completion {
  enum class Kind : std::uint8_t {
    posted,   ///< an operation of ours is over: of a write, its bytes are in the peer's memory, or will be before any
              ///< later immediate (Limits::is_ordered); its local memory is free again
    arrived,  ///< a peer's write with an immediate is in our memory
  };
  Kind kind = Kind::posted;
  Status status = Status::ok;
  std::uint32_t immediate = 0;  ///< arrived
  std::uint64_t context = 0;    ///< posted
};

struct Posted {
  std::size_t count;  ///< that many of the list, from its beginning, were taken
  Status status;      ///< ok if that is all; else why the next one was not
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual const char* name() const noexcept = 0;
  virtual const Limits& limits() const noexcept = 0;

  /// A place for a peer, whose index the other functions take; negative if there is none.
  virtual int open_peer() noexcept = 0;
  /// What that peer gives to its connect(), by any means. Empty on failure.
  virtual std::vector<std::byte> local_address(int peer) noexcept = 0;
  virtual Status connect(int peer, std::span<const std::byte> address) noexcept = 0;

  /// Makes memory reachable: for peers, and for local pieces.
  virtual Status register_memory(void* memory, std::size_t bytes, Region& region) noexcept = 0;
  /// The same of a GPU's memory, whole pages of one allocation; refused by fabrics that do not reach such memory.
  virtual Status register_gpu_memory(void* memory, std::size_t bytes, int device, Region& region) noexcept {
    static_cast<void>(memory), static_cast<void>(bytes), static_cast<void>(device), static_cast<void>(region);
    return Status::refused;
  }
  /// From now on peers reach it no more. A region that is not registered is left alone.
  virtual void deregister(Region& region) noexcept = 0;

  /// Hands over a list of operations. Preconditions: each is within the limits, and not empty.
  virtual Posted post(int peer, std::span<const Post> list) noexcept = 0;
  /// Makes progress, and says what is over: fills `completions` from its beginning, and returns how many.
  virtual std::size_t poll(std::span<Completion> completions) noexcept = 0;

  /// For good: nothing that was posted reads or writes local memory from now on, and no peer does. Regions can still be
  /// deregistered.
  virtual void stop() noexcept = 0;
};

}  // namespace gapless::fabric
