// The inboxes of endpoints that share memory, the rings that lead to them, and the outboxes: one piece of memory for
// each communicator, of this process or of several of its node.
//
// Every pair has its place in the memory, so no address is ever told. A writer makes its ring with its first message,
// and enters itself in the reader's inbox; memory that nobody uses is never there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/shared_segment.hpp"
#include "endpoints/rings/outbox.hpp"
#include "endpoints/rings/ring.hpp"

namespace gapless::mpi::endpoints {

/// What others write, and read, of one inbox. Zeros at first.
struct alignas(64) RingInboxHead {
  std::atomic<bool> is_closed;         ///< nobody reads it any more
  std::atomic<bool> takes_from_lane;   ///< an endpoint that has a place here has no ring, and sends by the library
  std::atomic<std::uint32_t> writers;  ///< how many have entered themselves
};

class Inboxes {
 public:
  Inboxes() noexcept = default;
  ~Inboxes();
  Inboxes(const Inboxes&) = delete;
  Inboxes& operator=(const Inboxes&) = delete;

  // Each makes them anew. False where the system refuses.
  /// For so many endpoints, all of this process.
  bool make(std::size_t endpoints) noexcept;
  /// For so many endpoints of this process and others, which join it.
  bool make_shared(std::size_t endpoints, std::string_view name) noexcept;
  bool join(std::size_t endpoints, pid_t owner, std::string_view name) noexcept;
  /// How many this process has that are shared.
  static int shared_count() noexcept;

  RingInboxHead& head(int inbox) const noexcept;
  /// The inbox of the n-th that has entered itself there; -1 while it does.
  int writer(int inbox, std::uint32_t n) const noexcept;
  RingMemory& ring(int from, int to) const noexcept;

  /// Makes the ring from one to another, once, and enters it. False, and the reader is told, if there is no memory.
  bool begin_ring(int from, int to) noexcept;

  OutboxMemory& outbox(int inbox) const noexcept;
  /// Makes that outbox, once. False if there is no memory.
  bool begin_outbox(int inbox) noexcept;

 private:
  void release() noexcept;
  bool share(std::size_t endpoints, SharedSegment segment) noexcept;
  static std::size_t head_bytes(std::size_t endpoints) noexcept;
  static std::size_t bytes(std::size_t endpoints) noexcept;
  std::atomic<std::uint32_t>* writers(int inbox) const noexcept;
  bool reserve(const void* memory, std::size_t bytes) noexcept;

  std::size_t endpoints_ = 0;
  std::byte* memory_ = nullptr;
  SharedSegment segment_;  ///< the memory, if other processes have it too
};

}  // namespace gapless::mpi::endpoints
