// One job where one engine reaches both memories; else pieces through page-locked memory, which all of them reach.
#include "transfer/packing.hpp"

#include <algorithm>
#include <cstring>

#include "transfer/blocking.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/report/statistics.hpp"

namespace gapless::transfer {
namespace {

using device::Location;
using device::MemoryKind;
using layout::Offset;
using pack::Direction;
using pack::Job;

constexpr Offset long_piece_bytes = Offset{32} << 20;
/// Where there is little page-locked memory.
constexpr Offset short_piece_bytes = Offset{1} << 20;

/// One call's two memories.
struct Packing {
  const Buffer& buffer;
  std::byte* packed;
  Location packed_location;
  Direction direction;

  bool packs() const noexcept { return direction == Direction::pack; }
  Job job(Offset begin, Offset end, void* to) const noexcept {
    return {buffer.type->layout.get(), {buffer.count, buffer.type->extent}, begin, end, direction, buffer.memory, to};
  }
  /// Packed bytes [begin, end), between the user's buffer and pinned memory.
  Result run_piece(Offset begin, Offset end, std::byte* pinned) const noexcept {
    const Job piece = job(begin, end, pinned);
    return buffer.location.is_cpu_addressable() ? run_on_host(piece)
                                                : run_on_gpu(piece, buffer.location.device, MemoryKind::pinned);
  }
  /// The same bytes, between pinned and packed memory.
  Result copy_piece(Offset begin, Offset end, std::byte* pinned) const noexcept {
    std::byte* destination = packs() ? packed + begin : pinned;
    const std::byte* source = packs() ? pinned : packed + begin;
    const auto bytes = static_cast<std::size_t>(end - begin);
    if (!packed_location.is_cpu_addressable()) return copy_on_gpu(destination, source, bytes, packed_location.device);
    std::memcpy(destination, source, bytes);
    return Result::ok;
  }
};

Result move_in_pieces(const Packing& packing) noexcept {
  const Offset size = packing.buffer.size();
  const Location& on_gpu =
      packing.buffer.location.is_cpu_addressable() ? packing.packed_location : packing.buffer.location;
  Offset piece_bytes = std::min(size, long_piece_bytes);
  PoolBuffer pinned(MemoryKind::pinned, on_gpu.device, static_cast<std::size_t>(piece_bytes));
  if (!pinned) {
    piece_bytes = std::min(size, short_piece_bytes);
    pinned = PoolBuffer::indispensable(on_gpu.device, static_cast<std::size_t>(piece_bytes));
  }
  if (!pinned) return device::runtime() == nullptr ? Result::device_failed : Result::out_of_memory;
  for (Offset begin = 0; begin < size; begin += piece_bytes) {
    const Offset end = std::min(size, begin + piece_bytes);
    const auto first = packing.packs() ? &Packing::run_piece : &Packing::copy_piece;
    const auto second = packing.packs() ? &Packing::copy_piece : &Packing::run_piece;
    for (const auto step : {first, second}) {
      if (const Result result = (packing.*step)(begin, end, pinned.data()); result != Result::ok) return result;
    }
  }
  return Result::ok;
}

Result move(const Packing& packing) noexcept {
  const Buffer& buffer = packing.buffer;
  const Location& packed_location = packing.packed_location;
  const auto bytes = static_cast<std::size_t>(buffer.size());
  const Job job = packing.job(0, buffer.size(), packing.packed);
  if (buffer.location.is_cpu_addressable() && packed_location.is_cpu_addressable()) {
    record(Scheme::packed, bytes);
    return run_on_host(job);
  }
  record(Scheme::oneshot, bytes);
  const int device = buffer.location.device;
  if (!buffer.location.is_cpu_addressable() && packed_location.is_gpu_addressable(device)) {
    return run_on_gpu(job, device, packed_location.kind);
  }
  return move_in_pieces(packing);
}

}  // namespace

Result pack(const Buffer& buffer, void* packed, Location packed_location) noexcept {
  return move({buffer, static_cast<std::byte*>(packed), packed_location, Direction::pack});
}

Result unpack(const Buffer& buffer, const void* packed, Location packed_location) noexcept {
  auto* const bytes = static_cast<std::byte*>(const_cast<void*>(packed));
  return move({buffer, bytes, packed_location, Direction::unpack});
}

Result gather(const Buffer& buffer, std::span<std::byte> first_bytes) noexcept {
  const Packing packing{buffer, first_bytes.data(), {}, Direction::pack};
  return run_on_host(packing.job(0, static_cast<Offset>(first_bytes.size()), first_bytes.data()));
}

}  // namespace gapless::transfer
