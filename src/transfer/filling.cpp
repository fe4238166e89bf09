#include "transfer/filling.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <new>

#include "base/per_thread.hpp"
#include "pack/host/string_copy.hpp"
#include "transfer/blocking.hpp"
#include "transfer/choice/corrected_send.hpp"

namespace gapless::transfer {
namespace {

using Clock = std::chrono::steady_clock;

/// What is packed at a time before it is copied: it stays in the first and second level's caches.
constexpr layout::Offset piece_bytes = 32 * 1024;
/// Fewer bytes are packed straight, however far the reader is.
constexpr layout::Offset least_copied_bytes = 4096;

/// Of the calling thread. Null where there is no memory.
std::byte* own_piece() noexcept {
  try {
    return of_this_thread<std::array<std::byte, piece_bytes>>().data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

float ns_per_byte(Clock::duration took, layout::Offset bytes) noexcept {
  return std::chrono::duration<float, std::nano>(took).count() / static_cast<float>(bytes);
}

/// What ordinary stores take for each byte in this process's own memory: from one half of `piece` to the other.
float own_ordinary_ns_per_byte(std::byte* piece) noexcept {
  constexpr layout::Offset half = piece_bytes / 2;
  auto least = Clock::duration::max();
  for (int times = 0; times < 8; ++times) {
    const auto started = Clock::now();
    pack::host::ordinary_copy(piece + half, piece, static_cast<std::size_t>(half));
    least = std::min(least, Clock::now() - started);
  }
  return ns_per_byte(least, half);
}

Result fill_piece(const pack::Job& job, model::Filling& filling) noexcept {
  const layout::Offset bytes = job.end - job.begin;
  const auto turn = bytes >= least_copied_bytes ? filling.next() : model::Filling::Turn{};
  std::byte* const piece = turn.is_copied() ? own_piece() : nullptr;
  if (piece == nullptr) return run_on_host(job);
  pack::Job to_piece = job;
  to_piece.packed = piece;
  if (const Result result = run_on_host(to_piece); result != Result::ok) return result;
  const auto started = turn.is_timed ? Clock::now() : Clock::time_point{};
  const auto copy = turn.is_by_string ? pack::host::string_copy : pack::host::ordinary_copy;
  copy(static_cast<std::byte*>(job.packed), piece, static_cast<std::size_t>(bytes));
  if (turn.is_timed) {
    const float ns = ns_per_byte(Clock::now() - started, bytes);
    static const float own_ns = own_ordinary_ns_per_byte(piece);
    filling.note(turn, turn.is_by_string ? ns : ns - own_ns);
  }
  return Result::ok;
}

}  // namespace

model::Filling* filling_of(headers::Inbox& reader) noexcept {
  return is_corrected() && pack::host::has_string_copy() ? &reader.filling : nullptr;
}

Result fill(const pack::Job& job, model::Filling* filling) noexcept {
  if (filling == nullptr) return run_on_host(job);
  pack::Job piece = job;
  Result result = Result::ok;
  for (; piece.begin < job.end && result == Result::ok; piece.begin = piece.end) {
    piece.end = std::min(job.end, piece.begin + piece_bytes);
    piece.packed = static_cast<std::byte*>(job.packed) + (piece.begin - job.begin);
    result = fill_piece(piece, *filling);
  }
  return result;
}

}  // namespace gapless::transfer
