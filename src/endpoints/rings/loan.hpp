// Bytes of a sender that a process of its node copies: the sender waits until they are taken.
//
// One processor copies from another process's memory more slowly than two, and the sender's has nothing else to do. So
// the reader offers long messages in pieces: it reads piece after piece, and the writer, whenever it looks, writes one
// that nobody has begun. Zeros at first.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/attached_memory.hpp"
#include "mpi/table/abi.hpp"

namespace gapless::mpi::endpoints {

struct alignas(64) Loan {
  enum class State : std::uint8_t { pending, taken, failed };
  struct Piece {
    MPI_Count begin, bytes;  ///< 0 bytes: there is none
  };
  /// Of the pieces between processes with so many endpoints each. At each call the system counts the users of a
  /// process's memory, in one place for all its threads: with many of these, few long pieces take less time.
  static MPI_Count piece_bytes_for(int endpoints) noexcept {
    constexpr MPI_Count least = 32 << 10, most = 256 << 10, of_each = 16 << 10;
    return std::clamp(endpoints * of_each, least, most);
  }

  // The writer's.
  void begin() noexcept {
    lender = fabric::own_thread();
    next.store(not_offered, std::memory_order_relaxed);
    given.store(0, std::memory_order_relaxed);
    is_refused.store(false, std::memory_order_relaxed);
    state.store(State::pending, std::memory_order_relaxed);
  }
  /// A piece to write to `to`, in the reader's process, and to end by end_piece().
  Piece next_to_give() noexcept {
    const MPI_Count first = next.load(std::memory_order_acquire);
    return first != not_offered && first < pieces() ? begin_piece() : Piece{};
  }
  bool has_given() const noexcept {
    return given.load(std::memory_order_relaxed) != 0 && !is_refused.load(std::memory_order_relaxed);
  }
  void end_piece(bool is_written) noexcept {
    if (!is_written) is_refused.store(true, std::memory_order_relaxed);
    given.fetch_add(1, std::memory_order_release);
  }

  // The reader's.
  void offer(std::byte* where, MPI_Count how_many, MPI_Count how_many_a_piece) noexcept {
    borrower = fabric::own_thread();
    to = where;
    bytes = how_many;
    piece_bytes = how_many_a_piece;
    next.store(0, std::memory_order_release);
  }
  Piece begin_piece() noexcept {
    const MPI_Count begin = next.fetch_add(1, std::memory_order_acq_rel) * piece_bytes;
    return begin < bytes ? Piece{begin, std::min(piece_bytes, bytes - begin)} : Piece{};
  }
  /// All are copied, of which the reader has copied so many.
  bool are_copied(MPI_Count by_reader) const noexcept {
    return by_reader + given.load(std::memory_order_acquire) == pieces();
  }
  void end(State how, std::uint32_t ns) noexcept {
    took_ns = ns;
    state.store(how, std::memory_order_release);
  }

  std::atomic<State> state;
  std::uint32_t took_ns;         ///< of taken ones: how long the reader has copied
  std::atomic<bool> is_refused;  ///< the writer could not write a piece
  pid_t lender;                  ///< the writer's thread, which may have ended since
  pid_t borrower;                ///< of an offer: the reader's thread, which waits for what has been begun
  std::byte* to;                 ///< the same, as are its bytes and those of a piece
  MPI_Count bytes, piece_bytes;

 private:
  static constexpr MPI_Count not_offered = MPI_Count{1} << 60;
  MPI_Count pieces() const noexcept { return (bytes + piece_bytes - 1) / piece_bytes; }
  std::atomic<MPI_Count> next;   ///< the first piece that nobody has begun
  std::atomic<MPI_Count> given;  ///< how many the writer has ended
};

}  // namespace gapless::mpi::endpoints
