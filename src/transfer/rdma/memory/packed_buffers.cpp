#include "transfer/rdma/memory/packed_buffers.hpp"

#include <utility>

namespace gapless::transfer::rdma {
namespace {

constexpr std::size_t page_bytes = std::size_t{2} << 20;  // of a GPU
constexpr std::size_t most_free = 512;                    // more than there can be messages under way

}  // namespace

PackedBuffers::PackedBuffers(fabric::Endpoint& endpoint) : endpoint_(endpoint) { free_.reserve(most_free); }

PackedBytes PackedBuffers::take(int device, std::size_t bytes) noexcept {
  for (PackedBytes& each : free_) {
    if (!each.buffer.is_there()) deregister(each);
  }
  std::erase_if(free_, [](const PackedBytes& each) { return !each.is_on_gpu(); });
  if (gpus_ == Gpus::refused) return {};
  const std::size_t whole_pages = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  auto best = free_.end();
  for (auto each = free_.begin(); each != free_.end(); ++each) {
    const std::size_t size = each->region.bytes;
    // A buffer that is much too long is left to a message that needs as much.
    if (each->buffer.location().device != device || size < bytes || size / 2 > whole_pages) continue;
    if (best == free_.end() || size < best->region.bytes) best = each;
  }
  if (best == free_.end()) return make_room(whole_pages) ? make(device, whole_pages) : PackedBytes{};
  PackedBytes packed = std::move(*best);
  free_.erase(best);
  ++held_;
  return packed;
}

/// Gives up the buffers that have been unused for longest. False if there is not room enough without them.
bool PackedBuffers::make_room(std::size_t bytes) noexcept {
  const std::size_t most = long_limit(device::MemoryKind::device);
  while (registered_bytes_ + bytes > most && !free_.empty()) {
    deregister(free_.front());
    free_.erase(free_.begin());
  }
  return registered_bytes_ + bytes <= most;
}

PackedBytes PackedBuffers::make(int device, std::size_t bytes) noexcept {
  PackedBytes packed{.buffer = PoolBuffer(device::MemoryKind::device, device, bytes)};
  if (!packed) return packed;
  if (endpoint_.register_gpu_memory(packed.buffer.data(), bytes, device, packed.region) != fabric::Status::ok) {
    if (gpus_ == Gpus::untried) gpus_ = Gpus::refused;
    return {};
  }
  gpus_ = Gpus::reached;
  ++registrations_;
  registered_bytes_ += bytes;
  ++held_;
  return packed;
}

void PackedBuffers::deregister(PackedBytes& packed) noexcept {
  if (!packed.is_on_gpu()) return;
  registered_bytes_ -= packed.region.bytes;
  endpoint_.deregister(packed.region);
}

void PackedBuffers::give(PackedBytes&& packed, bool is_reached) noexcept {
  if (!packed) return;
  held_ -= packed.is_on_gpu() ? 1 : 0;
  const bool has_place = free_.size() < free_.capacity();
  if (is_reached || !has_place) deregister(packed);
  if (has_place) free_.push_back(std::move(packed));
}

void PackedBuffers::clear() noexcept {
  for (PackedBytes& each : free_) deregister(each);
  free_.clear();
}

}  // namespace gapless::transfer::rdma
