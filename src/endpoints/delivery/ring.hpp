// How messages go from one endpoint of a process to another: a ring of cells that the one writes and the other reads.
//
// Each cell is a cache line. It holds the envelope and a very short message; a short one lies beside the cells, in
// memory that is used in the same order; of a long one the cell names the sender's operation, and the receiver copies
// from the sender's buffer. Writer and reader share no lock, and change no common word: a cell's turn says that it is
// written, and the reader says now and then how far it has read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "endpoints/delivery/matching.hpp"

namespace gapless::mpi::endpoints {

/// Longer messages are copied once, by the receiver: one more copy would cost more than the sender's wait.
inline constexpr MPI_Count most_copied_aside = 8192;

struct alignas(64) Cell {
  std::atomic<std::uint32_t> turn{0};  ///< the number of its message among the ring's, from 1, once that is written
  std::int32_t tag = 0;
  Context context = Context::messages;
  Operation* sender = nullptr;  ///< waits until its buffer has been read; null where the bytes are in the ring
  MPI_Count bytes = 0;
  std::uint32_t end_beside = 0;  ///< how much of the memory beside the cells is used once this message is
  std::byte inside[28];

  static bool holds(MPI_Count length) noexcept { return length <= static_cast<MPI_Count>(sizeof inside); }
};
static_assert(sizeof(Cell) == 64);

class Ring {
 public:
  /// Tests count from another `first` number than 0, to see the numbers wrap around.
  Ring(int source_rank, const std::atomic<bool>& closed, std::uint32_t first = 0) noexcept;

  const int source;  ///< the writer's rank
  /// Nobody reads it any more.
  bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // The writer's part.
  struct Room {
    Cell* cell = nullptr;  ///< null: the ring is full
    std::byte* memory = nullptr;
  };
  /// A message with so many bytes, at most `most_copied_aside`, can ever lie in the ring: there is memory for it.
  bool can_hold(MPI_Count bytes) noexcept { return Cell::holds(bytes) || make_memory_beside(); }
  /// Room for a message with so many bytes in the ring. Precondition: it can hold them.
  Room claim(MPI_Count bytes) noexcept;
  /// The reader sees the claimed cell.
  void publish(Cell& cell) noexcept { cell.turn.store(++written_, std::memory_order_release); }
  /// Sends that wait for room, in their order.
  int stalled = 0;
  bool is_full = false;  ///< of use while they are tried again

  // The reader's part.
  /// The next message; null if there is none yet.
  const Cell* front() const noexcept {
    const Cell& cell = cells_[read_ % cell_count];
    return cell.turn.load(std::memory_order_acquire) == read_ + 1 ? &cell : nullptr;
  }
  const std::byte* bytes_of(const Cell& cell) const noexcept {
    return cell.holds(cell.bytes) ? cell.inside
                                  : beside_.get() + (cell.end_beside - rounded(cell.bytes)) % beside_bytes;
  }
  /// Done with the first message, whose bytes may be written over.
  void pop() noexcept {
    end_read_.store(cells_[read_ % cell_count].end_beside, std::memory_order_release);
    cells_read_.store(++read_, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t cell_count = 256;
  static constexpr std::uint32_t beside_bytes = 64 << 10;
  static std::uint32_t rounded(MPI_Count bytes) noexcept { return (static_cast<std::uint32_t>(bytes) + 63) / 64 * 64; }
  bool make_memory_beside() noexcept;

  const std::atomic<bool>& closed_;
  // Numbers of messages and of bytes since the beginning, which may wrap around: both sizes divide 2^32.
  alignas(64) std::uint32_t written_;
  std::uint32_t seen_read_, end_written_, seen_end_read_;
  std::unique_ptr<std::byte[]> beside_;
  alignas(64) std::uint32_t read_;
  std::atomic<std::uint32_t> cells_read_, end_read_;
  std::array<Cell, cell_count> cells_;
};

/// The rings that lead to one endpoint.
class Inbox {
 public:
  explicit Inbox(std::size_t writers) : rings_(writers) {}
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  std::atomic<bool> is_closed{false};  ///< nobody reads it any more

  /// A ring more, for a writer that has none yet; null if there is no memory.
  Ring* add(int source_rank) noexcept;
  int count() const noexcept { return count_.load(std::memory_order_acquire); }
  /// Null while the ring is being added.
  Ring* at(int i) const noexcept { return rings_[static_cast<std::size_t>(i)].load(std::memory_order_acquire); }

 private:
  std::vector<std::atomic<Ring*>> rings_;
  std::atomic<int> count_{0};
};

}  // namespace gapless::mpi::endpoints
