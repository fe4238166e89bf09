#include "fabric/remote/loopback.hpp"

#include <algorithm>
#include <cstring>

namespace gapless::fabric {

LoopbackEndpoint::LoopbackEndpoint(LoopbackNetwork& network, const LoopbackShape& shape)
    : network_(network), shape_(shape), random_(shape.seed) {
  const std::lock_guard lock(network_.mutex_);
  number_ = static_cast<int>(network_.endpoints_.size());
  network_.endpoints_.push_back(this);
}

LoopbackEndpoint::~LoopbackEndpoint() {
  const std::lock_guard lock(network_.mutex_);
  network_.endpoints_[static_cast<std::size_t>(number_)] = nullptr;
}

int LoopbackEndpoint::open_peer() noexcept {
  peers_.push_back(-1);
  return static_cast<int>(peers_.size()) - 1;
}

std::vector<std::byte> LoopbackEndpoint::local_address(int) noexcept {
  std::vector<std::byte> address(sizeof number_);
  std::memcpy(address.data(), &number_, sizeof number_);
  return address;
}

Status LoopbackEndpoint::connect(int peer, std::span<const std::byte> address) noexcept {
  int number = -1;
  if (address.size() != sizeof number) return Status::peer_failed;
  std::memcpy(&number, address.data(), sizeof number);
  const std::lock_guard lock(network_.mutex_);
  if (number < 0 || number >= static_cast<int>(network_.endpoints_.size())) return Status::peer_failed;
  peers_[static_cast<std::size_t>(peer)] = number;
  return Status::ok;
}

Status LoopbackEndpoint::register_memory(void* memory, std::size_t bytes, Region& region) noexcept {
  const std::lock_guard lock(network_.mutex_);
  if (faults.registrations_left == 0 || bytes > faults.largest_registration) return Status::refused;
  --faults.registrations_left;
  region.memory = static_cast<std::byte*>(memory);
  region.bytes = bytes;
  region.key = next_key_++ << 8 | static_cast<std::uint64_t>(number_ & 255);
  region.address = shape_.virtual_addresses ? reinterpret_cast<std::uintptr_t>(memory) : 0;
  region.handle = this;
  regions_[region.key] = region;
  return Status::ok;
}

Status LoopbackEndpoint::register_gpu_memory(void* memory, std::size_t bytes, int, Region& region) noexcept {
  ++gpu_attempts_;
  if (faults.gpu_registrations_left == 0) return Status::refused;
  --faults.gpu_registrations_left;
  return register_memory(memory, bytes, region);
}

void LoopbackEndpoint::deregister(Region& region) noexcept {
  const std::lock_guard lock(network_.mutex_);
  if (region.handle != nullptr) regions_.erase(region.key);
  region.handle = nullptr;
}

bool LoopbackEndpoint::is_right(const Post& post) const noexcept {
  const std::size_t most = post.opcode == Opcode::write ? limits().gather_entries : limits().scatter_entries;
  std::size_t bytes = 0;
  for (const Piece& piece : post.local) {
    if (piece.bytes == 0 || piece.region == nullptr || !piece.region->covers(piece.memory, piece.bytes)) return false;
    const auto region = regions_.find(piece.region->key);
    if (region == regions_.end() || !region->second.covers(piece.memory, piece.bytes)) return false;
    bytes += piece.bytes;
  }
  return bytes > 0 && bytes <= limits().operation_bytes && post.local.size() <= most &&
         !(post.has_immediate && (post.opcode == Opcode::read || !limits().has_immediates));
}

Posted LoopbackEndpoint::post(int peer, std::span<const Post> list) noexcept {
  const std::lock_guard lock(network_.mutex_);
  if (faults.is_connecting) {
    ++untaken_;
    return {0, Status::again};
  }
  std::size_t count = 0;
  for (const Post& post : list) {
    if (queue_.size() >= limits().outstanding) return {count, Status::again};
    if (!is_right(post)) {
      ++misuses_;
      return {count, Status::failed};
    }
    most_entries_ = std::max(most_entries_, post.local.size());
    queue_.push_back({post, {post.local.begin(), post.local.end()}, peer});
    ++count;
  }
  return {count, Status::ok};
}

std::byte* LoopbackEndpoint::resolve(std::uint64_t key, RemoteAddress address, std::size_t bytes) noexcept {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return nullptr;
  const Region& region = found->second;
  const RemoteAddress offset = address - region.address;
  if (offset > region.bytes || region.bytes - offset < bytes) return nullptr;
  return region.memory + offset;
}

Status LoopbackEndpoint::carry_out(const Operation& operation) noexcept {
  const int number = peers_[static_cast<std::size_t>(operation.peer)];
  LoopbackEndpoint* peer = number < 0 ? nullptr : network_.endpoints_[static_cast<std::size_t>(number)];
  if (peer == nullptr || peer->faults.is_dead) return Status::peer_failed;
  if (faults.operations_left == 0) return Status::failed;
  --faults.operations_left;
  std::size_t bytes = 0;
  for (const Piece& piece : operation.pieces) bytes += piece.bytes;
  std::byte* remote = peer->resolve(operation.post.key, operation.post.remote, bytes);
  if (remote == nullptr) return Status::failed;
  for (const Piece& piece : operation.pieces) {
    if (operation.post.opcode == Opcode::write) {
      std::memcpy(remote, piece.memory, piece.bytes);
    } else {
      std::memcpy(piece.memory, remote, piece.bytes);
    }
    remote += piece.bytes;
  }
  if (operation.post.has_immediate) {
    peer->completions_.push_back({Completion::Kind::arrived, Status::ok, operation.post.immediate, 0});
  }
  return Status::ok;
}

void LoopbackEndpoint::stop() noexcept {
  const std::lock_guard lock(network_.mutex_);
  faults.is_dead = true;
  queue_.clear();
}

std::size_t LoopbackEndpoint::poll(std::span<Completion> completions) noexcept {
  const std::lock_guard lock(network_.mutex_);
  if (faults.is_dead) return 0;
  for (std::size_t i = 0; i < 4 && !queue_.empty() && !faults.stalls; ++i) {
    const std::size_t next = limits().is_ordered ? 0 : random_() % queue_.size();
    const auto operation = queue_.begin() + static_cast<std::ptrdiff_t>(next);
    const Status status = carry_out(*operation);
    completions_.push_back({Completion::Kind::posted, status, 0, operation->post.context});
    queue_.erase(operation);
  }
  std::size_t count = 0;
  for (; count < completions.size() && !completions_.empty(); ++count) {
    completions[count] = completions_.front();
    completions_.pop_front();
  }
  return count;
}

}  // namespace gapless::fabric
