#include "transfer/rdma/memory/staging.hpp"

#include <cstdlib>

namespace gapless::transfer::rdma {

void Staging::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

Staging::Staging(fabric::Endpoint& endpoint, std::size_t segment_bytes, std::size_t segments, std::size_t mailboxes)
    : endpoint_(endpoint),
      segment_bytes_((segment_bytes + 4095) / 4096 * 4096),
      segments_(segments),
      header_bytes_(bells_bytes + mailboxes * mailbox_bytes) {
  const std::size_t bytes = header_bytes_ + 2 * segments_ * segment_bytes_;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
  if (memory_ == nullptr) return;
  for (std::size_t side = 0; side < 2; ++side) {
    for (std::size_t i = segments_; i > 0; --i) free_[side].push_back(static_cast<int>(side * segments_ + i - 1));
  }
  for (std::size_t i = 0; i < 2 * bell_bytes; ++i) memory_.get()[i] = std::byte{0};
  if (endpoint_.register_memory(memory_.get(), bytes, region_) != fabric::Status::ok) region_.handle = nullptr;
}

Staging::~Staging() { endpoint_.deregister(region_); }

PoolInformation Staging::information(std::size_t mailbox) const noexcept {
  return {region_.address + header_bytes_, region_.key, segment_bytes_, region_.address + bell_bytes,
          region_.address + bells_bytes + mailbox * mailbox_bytes};
}

int Staging::acquire(Side side) noexcept {
  auto& free = free_[static_cast<std::size_t>(side)];
  if (free.empty()) return -1;
  const int segment = free.back();
  free.pop_back();
  return segment;
}

// The lists were made with room for all segments.
void Staging::release(int segment) noexcept { free_[static_cast<std::size_t>(segment) / segments_].push_back(segment); }

}  // namespace gapless::transfer::rdma
