#include "transfer/pulls/source.hpp"

#include <algorithm>

#include "transfer/blocking.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/headers/exported/introductions.hpp"
#include "transfer/packing.hpp"

namespace gapless::transfer::pulls {

using layout::Offset;

bool open(const StridedMessage& message, const device::MemoryHandle& allocation, int device,
          device::OpenedMemory::Use& use, Source& source) noexcept {
  const Understood* const understood = device < 0 ? nullptr : understand(message.layout);
  const auto span = understood != nullptr ? span_of(understood->facts, message.count, message.extent) : std::nullopt;
  if (!span || __builtin_mul_overflow(understood->layout->size, message.count, &source.size)) return false;
  const std::uint64_t first = message.address + static_cast<std::uint64_t>(span->first);
  const auto bytes = static_cast<std::uint64_t>(span->end) - static_cast<std::uint64_t>(span->first);
  if (!allocation.contains(first, bytes)) return false;
  device::Status status = device::Status::failed;
  if (!use) use = headers::opened_memory().use(allocation, device, status);
  if (!use) return false;
  source.layout = understood->layout;
  source.outer = {message.count, message.extent};
  source.memory = static_cast<std::byte*>(use.at(first)) - span->first;
  return true;
}

namespace {

/// Packs the first `bytes` bytes piece by piece into memory of the GPU, and calls take(piece, begin, end) for each
/// piece.
template <class Take>
Result take_pieces(const Source& source, int device, Offset bytes, const Take& take) noexcept {
  constexpr Offset longest = Offset{4} << 20;
  const PoolBuffer piece(device::MemoryKind::device, device, static_cast<std::size_t>(std::min(longest, bytes)));
  Result result = piece ? Result::ok : Result::out_of_memory;
  for (Offset begin = 0; result == Result::ok && begin < bytes; begin += longest) {
    const Offset end = std::min(begin + longest, bytes);
    result = run_on_gpu(source.packing(begin, end, piece.data()), device, device::MemoryKind::device);
    if (result == Result::ok) result = take(piece.data(), begin, end);
  }
  return result;
}

}  // namespace

Result copy_packed(const Source& source, int device, std::byte* into, std::size_t bytes) noexcept {
  return take_pieces(source, device, static_cast<Offset>(bytes), [&](std::byte* piece, Offset begin, Offset end) {
    return copy_on_gpu(into + begin, piece, static_cast<std::size_t>(end - begin), device);
  });
}

Result copy_first(const Source& source, const Buffer& into, Offset bytes) noexcept {
  const int device = into.location.device;
  return take_pieces(source, device, bytes, [&](std::byte* piece, Offset begin, Offset end) {
    return run_on_gpu(into.job(pack::Direction::unpack, begin, end, piece), device, device::MemoryKind::device);
  });
}

Result copy_by_host(const Source& source, int device, const Buffer& into, Offset bytes) noexcept {
  PoolBuffer on_host;
  return take_pieces(source, device, bytes, [&](std::byte* piece, Offset begin, Offset end) {
    const auto length = static_cast<std::size_t>(end - begin);
    if (!on_host) on_host = PoolBuffer(device::MemoryKind::host, -1, length);
    if (!on_host) return Result::out_of_memory;
    const Result copied = copy_on_gpu(on_host.data(), piece, length, device);
    if (copied != Result::ok) return copied;
    return move_range(pack::Direction::unpack, into, begin, end, on_host.data(), on_host.location());
  });
}

}  // namespace gapless::transfer::pulls
