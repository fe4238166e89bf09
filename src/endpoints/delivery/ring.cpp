#include "endpoints/delivery/ring.hpp"

#include <new>

namespace gapless::mpi::endpoints {

Ring::Ring(int source_rank, const std::atomic<bool>& closed, std::uint32_t first) noexcept
    : source(source_rank),
      closed_(closed),
      written_(first),
      seen_read_(first),
      end_written_(first / 64 * 64),
      seen_end_read_(end_written_),
      read_(first),
      cells_read_(first),
      end_read_(end_written_) {
  // A cell's turn is never that of a message to come.
  for (Cell& cell : cells_) cell.turn.store(first, std::memory_order_relaxed);
}

bool Ring::make_memory_beside() noexcept {
  if (beside_ == nullptr) beside_.reset(new (std::nothrow) std::byte[beside_bytes]);
  return beside_ != nullptr;
}

Ring::Room Ring::claim(MPI_Count bytes) noexcept {
  if (written_ - seen_read_ == cell_count) {
    seen_read_ = cells_read_.load(std::memory_order_acquire);
    if (written_ - seen_read_ == cell_count) return {};
  }
  Cell& cell = cells_[written_ % cell_count];
  if (cell.holds(bytes)) {
    cell.end_beside = end_written_;
    return {&cell, cell.inside};
  }
  // A message lies in one piece, so what is left before the memory's end may stay unused.
  const std::uint32_t length = rounded(bytes);
  const std::uint32_t place = end_written_ % beside_bytes;
  const std::uint32_t begin = place + length <= beside_bytes ? end_written_ : end_written_ + (beside_bytes - place);
  if (begin + length - seen_end_read_ > beside_bytes) {
    seen_end_read_ = end_read_.load(std::memory_order_acquire);
    if (begin + length - seen_end_read_ > beside_bytes) return {};
  }
  cell.end_beside = end_written_ = begin + length;
  return {&cell, beside_.get() + begin % beside_bytes};
}

Inbox::~Inbox() {
  for (const auto& ring : rings_) delete ring.load();
}

Ring* Inbox::add(int source_rank) noexcept {
  Ring* const ring = new (std::nothrow) Ring(source_rank, is_closed);
  if (ring != nullptr) rings_[static_cast<std::size_t>(count_.fetch_add(1))].store(ring, std::memory_order_release);
  return ring;
}

}  // namespace gapless::mpi::endpoints
