// All messages of this process that are under way, and the progress thread: what service.hpp promises, as one object.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/steady_condition.hpp"
#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/memory/packed_buffers.hpp"
#include "transfer/rdma/rendezvous/corrected_receives.hpp"
#include "transfer/rdma/rendezvous/service.hpp"

namespace gapless::transfer::rdma {

using Clock = std::chrono::steady_clock;

struct Transfer {
  int rank = -1;
  Side side = Side::sender;
  Memory memory;
  Offer offer;
  Message* message = nullptr;  ///< null at a receiver until the channel has one
  WrittenLetter letter;        ///< to be mailed
  bool is_mailed = false;
  bool is_declined = false;
  bool is_detached = false;  ///< has no owner: ends by itself
  bool is_over = false;
  bool is_complete = false;  ///< of a send that is not over: its bytes are in memory of gapless's own
  transfer::Result result = transfer::Result::under_way;
  std::unique_ptr<std::byte[]> copy;
  PackedBytes packed;                           ///< of a GPU
  std::optional<CorrectedReceives::Turn> turn;  ///< a receiver's, where the scheme is not forced
  Taken taken;
  Clock::time_point begun = Clock::now();
};

struct Peer {
  int index = -1;  ///< the endpoint's
  bool is_connected = false;
  bool is_neighbour = false;  ///< of this node
  unsigned times_gone = 0;    ///< looks in a row that have found the process ended
  KnownLayouts layouts;

  /// Bytes that the peer sent before its end are taken in between the looks.
  bool is_gone() const noexcept { return times_gone >= 5; }
};

/// Thread-safe, but for its construction.
class Transfers {
 public:
  /// `has_nodes`: there are peers on other nodes. Throws std::bad_alloc. The object is of use only if is_usable().
  Transfers(std::unique_ptr<fabric::Endpoint> endpoint, const model::FabricProfile& profile, int rank, int size,
            bool has_nodes);

  bool is_usable() const noexcept {
    return channel_->ok() && !address_.empty() && address_.size() <= most_address_bytes;
  }
  int rank() const noexcept { return rank_; }
  std::span<const std::byte> address() const noexcept { return address_; }
  bool is_sooner_than_others(const Blocks& blocks, double others_ns) const noexcept;

  Transfer* send(int rank, const Memory& memory, PackedBytes packed = {}) noexcept;
  Transfer* send_packed(int rank, int device, std::size_t bytes) noexcept;
  Transfer* receive(int rank, std::span<const std::byte> address, const Offer& offer, const Memory* memory,
                    PackedBytes packed = {}) noexcept;
  Transfer* receive_on_gpu(int rank, std::span<const std::byte> address, const Offer& offer, int device) noexcept;
  void withdraw(Transfer* transfer) noexcept;
  transfer::Result poll(Transfer& transfer) noexcept;
  transfer::Result wait(Transfer& transfer) noexcept;
  transfer::Result complete_alone(Transfer& transfer) noexcept;
  void end(Transfer* transfer) noexcept;
  void drain(bool (*has_ended)(int rank)) noexcept;
  void stop() noexcept;
  /// Closes the endpoint, and the files of its provider with it. Precondition: stopped, and no message follows.
  void close() noexcept { endpoint_->stop(); }
  void count(std::uint64_t* counts) noexcept;
  std::uint64_t held_registrations() noexcept;

 private:
  Peer* peer_of(int rank) noexcept;
  bool connect(Peer& peer, std::span<const std::byte> address) noexcept;
  bool enlist(Transfer* transfer) noexcept;
  void accept(Transfer& transfer) noexcept;
  bool goes_straight(const Offer& offer) const noexcept;
  Message* choose_and_receive(Peer& peer, Transfer& transfer) noexcept;
  void open_letter(Transfer& transfer) noexcept;
  bool copy_out(Transfer& transfer) noexcept;
  bool complete(Transfer& transfer) noexcept;
  PackedBytes take_packed(int device, std::size_t bytes) noexcept;
  static void hold(Transfer& transfer, const Memory& memory, PackedBytes&& packed) noexcept;
  void destroy(Transfer* transfer) noexcept;
  void look_for_the_gone() noexcept;
  bool may_get_free() const noexcept;
  bool step(Transfer& transfer) noexcept;
  void advance(Transfer& transfer) noexcept;
  bool is_settled(const Transfer& transfer) const noexcept;
  void finish(Transfer& transfer, Result result) noexcept;
  void progress() noexcept;
  void work() noexcept;

  std::mutex mutex_;  ///< guards all below that changes, and the endpoint
  SteadyCondition begun_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::unique_ptr<PackedBuffers> packed_;
  std::unique_ptr<Channel> channel_;
  std::vector<Peer> peers_;
  std::vector<std::byte> address_;
  LayoutNumbers numbers_;
  CorrectedReceives corrected_;
  std::vector<Transfer*> active_;
  Clock::time_point finished_{};                ///< when the last message was over
  Clock::time_point looked_at_ = Clock::now();  ///< when peers were last looked for
  std::uint64_t copied_out_ = 0, gpu_bytes_ = 0;
  int rank_;
  bool has_nodes_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace gapless::transfer::rdma
