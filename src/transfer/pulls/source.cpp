#include "transfer/pulls/source.hpp"

#include <algorithm>

#include "transfer/blocking.hpp"
#include "transfer/buffers/buffers.hpp"
#include "transfer/headers/exported/introductions.hpp"

namespace gapless::transfer::pulls {

using layout::Offset;

pack::Job unpacking(const Buffer& into, Offset bytes, void* packed) noexcept {
  return {
      into.type->layout.get(), {into.count, into.type->extent}, 0, bytes, pack::Direction::unpack, into.memory, packed};
}

bool open(const Place& place, const device::MemoryHandle& allocation, int device, device::OpenedMemory::Use& use,
          Source& source) noexcept {
  const Understood* const understood = device < 0 ? nullptr : understand(place.layout);
  const auto span = understood != nullptr ? span_of(understood->facts, place.count, place.extent) : std::nullopt;
  if (!span || __builtin_mul_overflow(understood->layout->size, place.count, &source.size)) return false;
  const std::uint64_t first = place.address + static_cast<std::uint64_t>(span->first);
  const auto bytes = static_cast<std::uint64_t>(span->last) - static_cast<std::uint64_t>(span->first);
  if (!allocation.contains(first) || bytes > allocation.bytes - (first - allocation.base)) return false;
  device::Status status = device::Status::failed;
  if (!use) use = headers::opened_memory().use(allocation, device, status);
  if (!use) return false;
  source.layout = understood->layout;
  source.outer = {place.count, place.extent};
  source.memory = static_cast<std::byte*>(use.at(first)) - span->first;
  return true;
}

Result copy_packed(const Source& source, int device, std::byte* into, std::size_t bytes) noexcept {
  constexpr std::size_t piece = std::size_t{4} << 20;
  const PoolBuffer between(device::MemoryKind::device, device, std::min(piece, bytes));
  Result result = between ? Result::ok : Result::out_of_memory;
  for (std::size_t at = 0; result == Result::ok && at < bytes; at += piece) {
    const std::size_t end = std::min(at + piece, bytes);
    const pack::Job job = source.packing(static_cast<Offset>(at), static_cast<Offset>(end), between.data());
    result = run_on_gpu(job, device, device::MemoryKind::device);
    if (result == Result::ok) result = copy_on_gpu(into + at, between.data(), end - at, device);
  }
  return result;
}

Result copy_first(const Source& source, const Buffer& into, Offset bytes) noexcept {
  const int device = into.location.device;
  const PoolBuffer between(device::MemoryKind::device, device, static_cast<std::size_t>(bytes));
  if (!between) return Result::out_of_memory;
  const Result packed = run_on_gpu(source.packing(0, bytes, between.data()), device, device::MemoryKind::device);
  if (packed != Result::ok) return packed;
  return run_on_gpu(unpacking(into, bytes, between.data()), device, device::MemoryKind::device);
}

}  // namespace gapless::transfer::pulls
