// One job where one engine reaches both memories; else pieces through page-locked memory, which all engines reach.
#include "transfer/packing.hpp"

#include <algorithm>

#include "pack/host/engine.hpp"
#include "transfer/blocking.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/report/report.hpp"

namespace gapless::transfer {
namespace {

using device::Location;
using device::MemoryKind;
using layout::Offset;
using pack::Direction;
using pack::Job;

constexpr Offset long_piece_bytes = Offset{32} << 20;
/// The length of pieces where there is little page-locked memory.
constexpr Offset short_piece_bytes = Offset{1} << 20;

/// The two memories of a call, and the packed bytes [begin, end) that move between them.
struct Packing {
  const Buffer& buffer;
  Offset begin, end;
  std::byte* packed;  ///< where packed byte `begin` is
  Location packed_location;
  Direction direction;

  bool packs() const noexcept { return direction == Direction::pack; }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(end - begin); }
  Job job(Offset from, Offset to, void* at) const noexcept { return buffer.job(direction, from, to, at); }
  /// Packed bytes [from, to), between the user's buffer and pinned memory.
  Result run_piece(Offset from, Offset to, std::byte* pinned) const noexcept {
    const Job piece = job(from, to, pinned);
    return buffer.location.is_cpu_addressable() ? run_on_host(piece)
                                                : run_on_gpu(piece, buffer.location.device, MemoryKind::pinned);
  }
  /// The same bytes, between pinned and packed memory.
  Result copy_piece(Offset from, Offset to, std::byte* pinned) const noexcept {
    std::byte* destination = packs() ? packed + (from - begin) : pinned;
    const std::byte* source = packs() ? pinned : packed + (from - begin);
    const auto length = static_cast<std::size_t>(to - from);
    if (!packed_location.is_cpu_addressable()) return copy_on_gpu(destination, source, length, packed_location.device);
    pack::host::copy_bytes(destination, source, length);
    return Result::ok;
  }
};

Result move_in_pieces(const Packing& packing) noexcept {
  const Offset size = packing.end - packing.begin;
  const Location& on_gpu =
      packing.buffer.location.is_cpu_addressable() ? packing.packed_location : packing.buffer.location;
  Offset piece_bytes = std::min(size, long_piece_bytes);
  PoolBuffer pinned(MemoryKind::pinned, on_gpu.device, static_cast<std::size_t>(piece_bytes));
  if (!pinned) {
    piece_bytes = std::min(size, short_piece_bytes);
    pinned = PoolBuffer::indispensable(on_gpu.device, static_cast<std::size_t>(piece_bytes));
  }
  if (!pinned) return device::runtime() == nullptr ? Result::device_failed : Result::out_of_memory;
  for (Offset begin = packing.begin; begin < packing.end; begin += piece_bytes) {
    const Offset end = std::min(packing.end, begin + piece_bytes);
    const auto first = packing.packs() ? &Packing::run_piece : &Packing::copy_piece;
    const auto second = packing.packs() ? &Packing::copy_piece : &Packing::run_piece;
    for (const auto step : {first, second}) {
      if (const Result result = (packing.*step)(begin, end, pinned.data()); result != Result::ok) return result;
    }
  }
  return Result::ok;
}

bool is_on_host(const Packing& packing) noexcept {
  return packing.buffer.location.is_cpu_addressable() && packing.packed_location.is_cpu_addressable();
}

Result move(const Packing& packing) noexcept {
  const Buffer& buffer = packing.buffer;
  const Location& packed_location = packing.packed_location;
  const Job job = packing.job(packing.begin, packing.end, packing.packed);
  if (is_on_host(packing)) return run_on_host(job);
  const int device = buffer.location.device;
  if (!buffer.location.is_cpu_addressable() && packed_location.is_gpu_addressable(device)) {
    return run_on_gpu(job, device, packed_location.kind);
  }
  return move_in_pieces(packing);
}

Result move_whole(Direction direction, const Buffer& buffer, void* packed, Location packed_location) noexcept {
  const Packing packing{buffer, 0, buffer.size(), static_cast<std::byte*>(packed), packed_location, direction};
  record_moved(buffer, direction == Direction::pack ? Side::sender : Side::receiver,
               is_on_host(packing) ? Scheme::packed : Scheme::oneshot);
  return move(packing);
}

Result move_first(Direction direction, const Buffer& buffer, std::byte* packed, std::size_t bytes) noexcept {
  const Packing packing{buffer, 0, static_cast<Offset>(bytes), packed, {}, direction};
  return run_on_host(packing.job(packing.begin, packing.end, packing.packed));
}

}  // namespace

Result pack(const Buffer& buffer, void* packed, Location packed_location) noexcept {
  return move_whole(Direction::pack, buffer, packed, packed_location);
}

Result unpack(const Buffer& buffer, const void* packed, Location packed_location) noexcept {
  return move_whole(Direction::unpack, buffer, const_cast<void*>(packed), packed_location);
}

Result move_range(Direction direction, const Buffer& buffer, Offset begin, Offset end, void* packed,
                  Location packed_location) noexcept {
  return move({buffer, begin, end, static_cast<std::byte*>(packed), packed_location, direction});
}

Result gather(const Buffer& buffer, std::span<std::byte> first_bytes) noexcept {
  return move_first(Direction::pack, buffer, first_bytes.data(), first_bytes.size());
}

Result scatter(const Buffer& buffer, std::span<const std::byte> first_bytes) noexcept {
  return move_first(Direction::unpack, buffer, const_cast<std::byte*>(first_bytes.data()), first_bytes.size());
}

}  // namespace gapless::transfer
