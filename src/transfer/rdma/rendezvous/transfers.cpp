#include "transfer/rdma/rendezvous/transfers.hpp"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/quiet_thread.hpp"
#include "base/settings.hpp"
#include "fabric/registry.hpp"
#include "transfer/blocking.hpp"
#include "transfer/rdma/scheme.hpp"

namespace gapless::transfer::rdma {
namespace {

constexpr std::chrono::seconds stall_limit{60}, touch_after{1};
constexpr std::chrono::milliseconds idle_look{10};
constexpr std::chrono::microseconds busy_look{50};

}  // namespace

Transfers::Transfers(std::unique_ptr<fabric::Endpoint> endpoint, const model::FabricProfile& profile, int rank,
                     int size, bool has_nodes)
    : endpoint_(std::move(endpoint)),
      peers_(static_cast<std::size_t>(size)),
      corrected_(settings().model != "fixed"),
      rank_(rank),
      has_nodes_(has_nodes) {
  Options options;
  options.profile = profile;
  options.stall_limit = stall_limit;
  options.touch_after = touch_after;
  packed_ = std::make_unique<PackedBuffers>(*endpoint_);
  channel_ = std::make_unique<Channel>(*endpoint_, options);
  active_.reserve(512);
  const int first = endpoint_->open_peer();
  address_ = endpoint_->local_address(first);
}

Peer* Transfers::peer_of(int rank) noexcept {
  if (rank < 0 || static_cast<std::size_t>(rank) >= peers_.size()) return nullptr;
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.index >= 0) return &peer;
  peer.index = endpoint_->open_peer();
  if (peer.index < 0) return nullptr;
  // A process that has sent a header may have ended since then, and is not found.
  peer.is_neighbour = !has_nodes_ || fabric::registry::find(rank).has_value();
  return &peer;
}

bool Transfers::connect(Peer& peer, std::span<const std::byte> address) noexcept {
  if (!peer.is_connected) peer.is_connected = endpoint_->connect(peer.index, address) == fabric::Status::ok;
  return peer.is_connected;
}

bool Transfers::enlist(Transfer* transfer) noexcept try {
  active_.push_back(transfer);
  if (!thread_.joinable()) thread_ = start_quiet_thread([this] { work(); });
  if (!thread_.joinable()) {
    active_.pop_back();
    return false;
  }
  begun_.notify_one();
  return true;
} catch (const std::exception&) {
  return false;
}

bool Transfers::is_sooner_than_others(const Blocks& blocks, double others_ns) const noexcept {
  const Options& options = channel_->options();
  const Ends ends{blocks, blocks, channel_->limits(),
                  segment_bytes_for(blocks.bytes, options.segment_bytes, options.profile)};
  return rdma::is_sooner_than_others(ends, options.profile, others_ns);
}

/// Gives the transfer its memory, and the packed bytes that belong to the transfer.
void Transfers::hold(Transfer& transfer, const Memory& memory, PackedBytes&& packed) noexcept {
  transfer.packed = std::move(packed);
  transfer.memory = memory;
  if (transfer.packed.is_on_gpu()) transfer.memory.region = &transfer.packed.region;
}

Transfer* Transfers::send(int rank, const Memory& memory, PackedBytes packed) noexcept {
  std::unique_ptr<Transfer> transfer(new (std::nothrow) Transfer);
  const std::lock_guard lock(mutex_);
  Peer* const peer = peer_of(rank);
  if (transfer == nullptr || peer == nullptr || is_stopping_) {
    packed_->give(std::move(packed), false);
    return nullptr;
  }
  transfer->rank = rank;
  hold(*transfer, memory, std::move(packed));
  transfer->message = channel_->send(peer->index, transfer->memory);
  if (transfer->message != nullptr) {
    transfer->offer = transfer->message->offer();
    if (enlist(transfer.get())) return transfer.release();
    transfer->message->decline();
    channel_->end(transfer->message);
  }
  destroy(transfer.release());
  return nullptr;
}

PackedBytes Transfers::take_packed(int device, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  return packed_->take(device, bytes);
}

Transfer* Transfers::send_packed(int rank, int device, std::size_t bytes) noexcept try {
  Memory memory = packed_memory(nullptr, bytes);
  PackedBytes packed = take_packed(device, bytes);
  if (!packed) packed.buffer = PoolBuffer(device::MemoryKind::pinned, device, bytes);
  if (!packed) return nullptr;
  memory.origin = packed.buffer.data();
  return send(rank, memory, std::move(packed));
} catch (const std::bad_alloc&) {
  return nullptr;
}

Transfer* Transfers::receive(int rank, std::span<const std::byte> address, const Offer& offer, const Memory* memory,
                             PackedBytes packed) noexcept {
  std::unique_ptr<Transfer> transfer(new (std::nothrow) Transfer);
  const std::lock_guard lock(mutex_);
  Peer* const peer = peer_of(rank);
  if (transfer == nullptr || peer == nullptr || is_stopping_ || !connect(*peer, address)) {
    packed_->give(std::move(packed), false);
    return nullptr;
  }
  transfer->rank = rank;
  transfer->side = Side::receiver;
  transfer->offer = offer;
  transfer->is_declined = memory == nullptr;
  if (memory != nullptr) hold(*transfer, *memory, std::move(packed));
  if (enlist(transfer.get())) return transfer.release();
  destroy(transfer.release());
  return nullptr;
}

Transfer* Transfers::receive_on_gpu(int rank, std::span<const std::byte> address, const Offer& offer,
                                    int device) noexcept try {
  if (!goes_straight(offer)) return nullptr;
  Memory memory = packed_memory(nullptr, offer.blocks.bytes);
  PackedBytes packed = take_packed(device, static_cast<std::size_t>(offer.blocks.bytes));
  if (!packed) return nullptr;
  memory.origin = packed.buffer.data();
  return receive(rank, address, offer, &memory, std::move(packed));
} catch (const std::bad_alloc&) {
  return nullptr;
}

void Transfers::work() noexcept {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    // A peer's last acknowledgement may need a poll of this process when no message of this process is under way any
    // more.
    begun_.wait_for(lock, idle_look, [this] { return is_stopping_ || !active_.empty(); });
    progress();
    lock.unlock();
    std::this_thread::sleep_for(busy_look);
    lock.lock();
  }
}

transfer::Result Transfers::poll(Transfer& transfer) noexcept {
  const std::lock_guard lock(mutex_);
  if (!transfer.is_over) progress();
  if (transfer.is_over) return transfer.result;
  return transfer.is_complete ? transfer::Result::ok : transfer::Result::under_way;
}

transfer::Result Transfers::wait(Transfer& transfer) noexcept {
  for (;;) {
    const transfer::Result result = poll(transfer);
    if (result != transfer::Result::under_way) return result;
    if (transfer.side == Side::sender && is_patience_over(transfer)) return complete_alone(transfer);
    ::sched_yield();
  }
}

/// Completes a send alone, whose memory the program then may reuse. False where there is no memory for a copy.
/// Precondition: nobody has taken the message.
bool Transfers::complete(Transfer& transfer) noexcept {
  return transfer.is_complete = static_cast<bool>(transfer.packed) || copy_out(transfer);
}

bool Transfers::copy_out(Transfer& transfer) noexcept try {
  const layout::Offset bytes = transfer.memory.size();
  std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
  if (copy == nullptr) return false;
  const Memory memory = packed_memory(copy.get(), static_cast<std::uint64_t>(bytes));
  if (run_on_host({transfer.memory.layout.get(), transfer.memory.outer, 0, bytes, pack::Direction::pack,
                   transfer.memory.origin, copy.get()}) != transfer::Result::ok)
    return false;
  transfer.message->move_to(memory);
  transfer.memory = memory;
  transfer.copy = std::move(copy);
  ++copied_out_;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

transfer::Result Transfers::complete_alone(Transfer& transfer) noexcept {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      progress();
      if (transfer.is_over) return transfer.result;
      if (transfer.is_complete) return transfer::Result::ok;
      // A message that its receiver has taken comes to its end without an MPI call of either process.
      const bool is_taken = transfer.message->is_started() || transfer.message->has_mail();
      if (!is_taken && complete(transfer)) return transfer::Result::ok;
    }
    ::sched_yield();
  }
}

void Transfers::withdraw(Transfer* transfer) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(active_, transfer);
  if (transfer->message != nullptr) {
    transfer->message->decline();
    channel_->end(transfer->message);
  }
  destroy(transfer);
}

void Transfers::end(Transfer* transfer) noexcept {
  if (transfer->side == Side::sender) {
    static_cast<void>(complete_alone(*transfer));
  } else if (!transfer->is_declined) {
    static_cast<void>(wait(*transfer));
  }
  const std::lock_guard lock(mutex_);
  if (transfer->is_over) {
    destroy(transfer);
  } else {
    transfer->is_detached = true;
  }
}

void Transfers::destroy(Transfer* transfer) noexcept {
  packed_->give(std::move(transfer->packed), transfer->result == transfer::Result::peer_failed);
  delete transfer;
}

void Transfers::drain(bool (*has_ended)(int rank)) noexcept {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      progress();
      const bool may_go_on = std::ranges::any_of(active_, [&](const Transfer* transfer) {
        const bool is_taken = transfer->side == Side::receiver || transfer->message->is_started();
        return is_taken || !has_ended(transfer->rank);
      });
      if (!may_go_on) return packed_->clear();
    }
    ::sched_yield();
  }
}

void Transfers::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    begun_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

std::uint64_t Transfers::held_registrations() noexcept {
  const std::lock_guard lock(mutex_);
  return channel_->registrations().held() + packed_->held();
}

void Transfers::count(std::uint64_t* counts) noexcept {
  const std::lock_guard lock(mutex_);
  const Counts& all = channel_->counts();
  const auto set = [counts](Counted which, std::uint64_t value) { counts[static_cast<std::size_t>(which)] = value; };
  set(Counted::posts, all.posts);
  set(Counted::lists, all.lists);
  set(Counted::posted_bytes, all.posted_bytes);
  set(Counted::notifications, all.notifications);
  set(Counted::copied_bytes, all.copied_bytes);
  set(Counted::registrations, channel_->registrations().registrations() + packed_->registrations());
  set(Counted::copied_out, copied_out_);
  set(Counted::abandoned, all.abandoned_segments);
  set(Counted::completions, all.completions);
  set(Counted::gpu_bytes, gpu_bytes_);
}

}  // namespace gapless::transfer::rdma
