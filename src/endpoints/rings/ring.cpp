#include "endpoints/rings/ring.hpp"

#include <algorithm>
#include <bit>

namespace gapless::mpi::endpoints {

void RingMemory::begin(std::uint32_t first) noexcept {
  cells_read.store(first, std::memory_order_relaxed);
  end_read.store(first / 64 * 64, std::memory_order_relaxed);
  // A cell's turn is never that of a message to come.
  for (Cell& cell : cells) cell.turn.store(first, std::memory_order_relaxed);
}

void RingWriter::open(RingMemory& memory, const std::atomic<bool>& closed, std::uint32_t first) noexcept {
  memory_ = &memory;
  closed_ = &closed;
  written_ = seen_read_ = first;
  end_written_ = seen_end_read_ = first / 64 * 64;
}

RingWriter::Room RingWriter::claim_beside(Cell& cell, MPI_Count bytes) noexcept {
  constexpr std::uint32_t beside_bytes = RingMemory::beside_bytes;
  // A message lies in one piece, so what is left before the memory's end may stay unused.
  const std::uint32_t length = RingMemory::rounded(bytes);
  const std::uint32_t place = end_written_ % beside_bytes;
  const std::uint32_t begin = place + length <= beside_bytes ? end_written_ : end_written_ + (beside_bytes - place);
  if (begin + length - seen_end_read_ > beside_bytes) {
    seen_end_read_ = memory_->end_read.load(std::memory_order_acquire);
    if (begin + length - seen_end_read_ > beside_bytes) return {};
  }
  cell.end_beside = end_written_ = begin + length;
  for (std::uint32_t at = 0; at < std::min(length, RingMemory::most_fetched); at += 64)
    fetch_to_write(&memory_->beside[(end_written_ + at) % beside_bytes]);
  return {&cell, &memory_->beside[begin % beside_bytes]};
}

/// The reader's processor has the cells of the last time around, and getting a line back takes as long as some
/// messages. A sender would wait for each: its next locked instruction does not begin before all that it has written is
/// there. So the next block is written here, all lines of which come at a time. The fetch of the block behind that one
/// is to spare this wait, but processors may leave fetches out of lines that are in this one's cache, too.
void RingWriter::own_cells_ahead() noexcept {
  constexpr std::uint32_t in_line = 64 / sizeof(Cell), end = 3 * block;
  if (written_ + end - seen_read_ > RingMemory::cell_count) {
    seen_read_ = memory_->cells_read.load(std::memory_order_acquire);
    if (written_ + end - seen_read_ > RingMemory::cell_count) return;
  }
  const auto cell = [&](std::uint32_t ahead) -> Cell& {
    return memory_->cells[(written_ + ahead) % RingMemory::cell_count];
  };
  for (std::uint32_t ahead = block; ahead < 2 * block; ahead += in_line) cell(ahead).tag = 0;
  for (std::uint32_t ahead = 2 * block; ahead < end; ahead += in_line) fetch_to_write(&cell(ahead));
}

int RingWriter::claim_loan() noexcept {
  if (free_loans_ == 0) return -1;
  const int number = std::countr_zero(free_loans_);
  free_loans_ &= free_loans_ - 1;
  loan(number).begin();
  return number;
}

void RingReader::open(RingMemory& memory, int source, std::uint32_t first) noexcept {
  memory_ = &memory;
  source_ = source;
  read_ = first;
}

}  // namespace gapless::mpi::endpoints
