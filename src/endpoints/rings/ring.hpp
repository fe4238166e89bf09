// How messages go from one endpoint to another of its node: a ring of cells that the one writes and the other reads.
//
// A cell holds the envelope and a very short message; a short one lies beside the cells, in memory that is used in the
// same order. Of a long one the cell says where else its bytes are. Two cells are a cache line, so a reader that is
// behind gets two messages at a time from the writer's processor. Writer and reader share no lock, and change no common
// word: a cell's turn says that it is written, and the reader says how far it has read. Rings have no addresses in
// them, for the processes of a node map them at different ones.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "endpoints/delivery/matching.hpp"
#include "endpoints/rings/loan.hpp"

namespace gapless::mpi::endpoints {

/// Longer messages are copied once, by the receiver: one more copy would cost more than the sender's wait.
inline constexpr MPI_Count most_copied_aside = 8192;

/// How the bytes of a message come.
enum class Way : std::uint8_t {
  copied,      ///< they lie in the ring
  lent,        ///< the sender, of the same process, waits until they have been copied from its buffer
  attached,    ///< the sender, of another process, does: its memory can be read from here
  in_outbox,   ///< they lie in the outbox of the sender, of another process
  by_library,  ///< as the next message of this sender on the receiver's lane
  failed,      ///< they do not: the sender could not read them
};

/// Bytes that the sender has, and how many.
template <class Address>
struct Elsewhere {
  Address* address;
  MPI_Count bytes;
};

struct alignas(32) Cell {
  std::atomic<std::uint32_t> turn;  ///< the number of its message among the ring's, from 1, once that is written
  std::int32_t tag;
  std::uint32_t end_beside;  ///< how much of the memory beside the cells is used once this message is
  Context context : 8;
  Way way;
  std::uint16_t number;  ///< of copied bytes; which loan of the ring attached ones are; the first unit in an outbox
  union {
    std::byte inside[16];
    Elsewhere<Operation> lent;
    Elsewhere<const std::byte> attached;  ///< the address is the sender's process's
    MPI_Count in_outbox;                  ///< how many bytes
  };

  static bool holds(MPI_Count length) noexcept { return length <= static_cast<MPI_Count>(sizeof inside); }
};
static_assert(sizeof(Cell) == 32 && most_copied_aside <= std::numeric_limits<std::uint16_t>::max());

/// The memory of a ring: zeros at first.
struct RingMemory {
  static constexpr std::uint32_t cell_count = 512;
  static constexpr std::uint32_t beside_bytes = 64 << 10;
  static constexpr int loan_count = 64;

  // The reader writes these. Numbers of messages and of bytes since the beginning, which may wrap around: both sizes
  // divide 2^32.
  alignas(64) std::atomic<std::uint32_t> cells_read;
  std::atomic<std::uint32_t> end_read;
  std::array<Loan, loan_count> loans;
  std::array<Cell, cell_count> cells;
  std::array<std::byte, beside_bytes> beside;

  /// How many of as many bytes as a message has are fetched for the next one, which mostly is of the same length.
  static constexpr std::uint32_t most_fetched = 1024;

  static std::uint32_t rounded(MPI_Count bytes) noexcept { return (static_cast<std::uint32_t>(bytes) + 63) / 64 * 64; }
  /// Numbers are counted from this one. Tests do, to see them wrap around; 0 is how memory of zeros begins.
  void begin(std::uint32_t first) noexcept;
};

/// Gets the cache line for this processor alone. Compilers that build for any x86-64 make of __builtin_prefetch a copy
/// that others keep, too, and the write waits for them again; processors that lack this instruction skip it.
inline void fetch_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// The writer's part of one ring.
class RingWriter {
 public:
  /// `closed`: nobody reads it any more.
  void open(RingMemory& memory, const std::atomic<bool>& closed, std::uint32_t first = 0) noexcept;
  bool is_open() const noexcept { return memory_ != nullptr; }
  bool is_closed() const noexcept { return closed_->load(std::memory_order_acquire); }

  struct Room {
    Cell* cell = nullptr;  ///< null: the ring is full
    std::byte* memory = nullptr;
  };
  /// Room for a message with so many bytes in the ring, at most `most_copied_aside`.
  Room claim(MPI_Count bytes) noexcept {
    constexpr std::uint32_t cell_count = RingMemory::cell_count;
    if (written_ - seen_read_ == cell_count) {
      seen_read_ = memory_->cells_read.load(std::memory_order_acquire);
      if (written_ - seen_read_ == cell_count) return {};
    }
    Cell& cell = memory_->cells[written_ % cell_count];
    if (!Cell::holds(bytes)) return claim_beside(cell, bytes);
    cell.end_beside = end_written_;
    return {&cell, cell.inside};
  }
  /// The reader sees the claimed cell.
  void publish(Cell& cell) noexcept {
    cell.turn.store(++written_, std::memory_order_release);
    if (written_ % block == 0) own_cells_ahead();
  }

  /// One of the ring's loans, pending; -1 if all are under way.
  int claim_loan() noexcept;
  Loan& loan(int number) const noexcept { return memory_->loans[static_cast<std::size_t>(number)]; }
  void end_loan(int number) noexcept { free_loans_ |= std::uint64_t{1} << number; }

  bool is_refused = false;  ///< there is no memory for it
  bool is_full = false;     ///< of use while sends that wait are tried again
  int stalled = 0;          ///< sends that wait for room, in their order

 private:
  static constexpr std::uint32_t block = 16;  ///< cells, some lines
  Room claim_beside(Cell& cell, MPI_Count bytes) noexcept;
  void own_cells_ahead() noexcept;

  RingMemory* memory_ = nullptr;
  const std::atomic<bool>* closed_ = nullptr;
  std::uint32_t written_ = 0, seen_read_ = 0, end_written_ = 0, seen_end_read_ = 0;
  std::uint64_t free_loans_ = ~std::uint64_t{0};
};

/// The reader's part of one ring.
class RingReader {
 public:
  void open(RingMemory& memory, int source, std::uint32_t first = 0) noexcept;
  bool is_open() const noexcept { return memory_ != nullptr; }
  int source() const noexcept { return source_; }  ///< the writer's rank

  /// The next message; null if there is none yet.
  const Cell* front() const noexcept {
    const Cell& cell = memory_->cells[read_ % RingMemory::cell_count];
    return cell.turn.load(std::memory_order_acquire) == read_ + 1 ? &cell : nullptr;
  }
  /// Of copied bytes.
  const std::byte* bytes_of(const Cell& cell) const noexcept {
    if (cell.holds(cell.number)) return cell.inside;
    return &memory_->beside[(cell.end_beside - RingMemory::rounded(cell.number)) % RingMemory::beside_bytes];
  }
  Loan& loan(int number) const noexcept { return memory_->loans[static_cast<std::size_t>(number)]; }
  /// Done with the first message, whose bytes may be written over.
  void pop() noexcept {
    memory_->end_read.store(memory_->cells[read_ % RingMemory::cell_count].end_beside, std::memory_order_release);
    memory_->cells_read.store(++read_, std::memory_order_release);
  }
  /// Where several messages come in a row, those behind them are there already. `taken`: how many have come so far.
  void fetch_ahead(int taken) const noexcept {
    constexpr std::uint32_t in_line = 64 / sizeof(Cell), ahead = 4 * in_line;
    for (std::uint32_t more = taken == 1 ? in_line : ahead; more <= ahead; more += in_line)
      __builtin_prefetch(&memory_->cells[(read_ + more) % RingMemory::cell_count], 0);
    const Cell& first = memory_->cells[read_ % RingMemory::cell_count];
    if (first.way != Way::copied || Cell::holds(first.number)) return;
    const std::uint32_t length = std::min(RingMemory::rounded(first.number), RingMemory::most_fetched);
    for (std::uint32_t at = 0; at < length; at += 64)
      __builtin_prefetch(&memory_->beside[(first.end_beside + at) % RingMemory::beside_bytes], 0);
  }

 private:
  RingMemory* memory_ = nullptr;
  int source_ = 0;
  std::uint32_t read_ = 0;
};

}  // namespace gapless::mpi::endpoints
