// An endpoint of libibverbs.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "device/device.hpp"
#include "fabric/verbs/connection.hpp"
#include "fabric/verbs/gpu_memory.hpp"
#include "fabric/verbs/verbs.hpp"

namespace gapless::fabric {
namespace {

using verbs::Connection;
using verbs::ConnectionAddress;
using verbs::Device;

Status status_of(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_SUCCESS:
      return Status::ok;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_WR_FLUSH_ERR:  // the connection has ended
    case IBV_WC_RESP_TIMEOUT_ERR:
      return Status::peer_failed;
    default:
      return Status::failed;
  }
}

class VerbsEndpoint final : public Endpoint {
 public:
  explicit VerbsEndpoint(std::unique_ptr<Device> device)
      : device_(std::move(device)),
        gpu_memory_(device_->library),
        contexts_(device_->limits.outstanding),
        requests_(device_->limits.outstanding),
        pieces_(device_->limits.outstanding * verbs::most_entries) {
    for (std::size_t i = 0; i < contexts_.size(); ++i) free_.push_back(i);
  }
  ~VerbsEndpoint() override { stop(); }

  const char* name() const noexcept override { return device_->name.c_str(); }
  const Limits& limits() const noexcept override { return device_->limits; }

  int open_peer() noexcept override try {
    auto connection = std::make_unique<Connection>(*device_);
    if (!connection->open()) return -1;
    connections_.push_back(std::move(connection));
    return static_cast<int>(connections_.size()) - 1;
  } catch (const std::bad_alloc&) {
    return -1;
  }

  std::vector<std::byte> local_address(int peer) noexcept override {
    if (peer < 0) return {};
    const ConnectionAddress address = connections_[static_cast<std::size_t>(peer)]->address();
    const auto bytes = std::as_bytes(std::span(&address, 1));
    return {bytes.begin(), bytes.end()};
  }

  Status connect(int peer, std::span<const std::byte> address) noexcept override {
    ConnectionAddress other;
    if (peer < 0 || address.size() != sizeof other) return Status::peer_failed;
    std::memcpy(&other, address.data(), sizeof other);
    return connections_[static_cast<std::size_t>(peer)]->connect(other) ? Status::ok : Status::peer_failed;
  }

  Status register_memory(void* memory, std::size_t bytes, Region& region) noexcept override {
    return adopt(device_->library.reg_mr(device_->domain, memory, bytes, access), memory, bytes, region);
  }

  Status register_gpu_memory(void* memory, std::size_t bytes, int device, Region& region) noexcept override {
    device::Runtime* const runtime = device::runtime();
    if (runtime == nullptr) return Status::refused;
    return adopt(gpu_memory_.add(device_->domain, *runtime, memory, bytes, device, access), memory, bytes, region);
  }

  void deregister(Region& region) noexcept override {
    if (region.handle != nullptr) device_->library.dereg_mr(static_cast<ibv_mr*>(region.handle));
    region.handle = nullptr;
  }

  Posted post(int peer, std::span<const Post> list) noexcept override {
    ibv_qp* pair = connections_[static_cast<std::size_t>(peer)]->pair();
    if (pair == nullptr) return {0, Status::peer_failed};
    const std::size_t count = std::min(list.size(), free_.size());
    if (count == 0) return {0, Status::again};
    for (std::size_t i = 0; i < count; ++i) {
      write_request(i, list[i]);
      requests_[i].next = i + 1 < count ? &requests_[i + 1] : nullptr;
    }
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(pair, requests_.data(), &bad);
    const std::size_t taken =
        error == 0 || bad == nullptr ? (error == 0 ? count : 0) : static_cast<std::size_t>(bad - requests_.data());
    free_.resize(free_.size() - taken);
    if (error != 0) return {taken, error == ENOMEM ? Status::again : Status::failed};
    return {taken, taken == list.size() ? Status::ok : Status::again};
  }

  std::size_t poll(std::span<Completion> completions) noexcept override {
    if (is_stopped_) return 0;
    std::array<ibv_wc, 32> entries;
    const int count =
        ibv_poll_cq(device_->queue, static_cast<int>(std::min(entries.size(), completions.size())), entries.data());
    std::size_t filled = 0;
    for (int i = 0; i < count; ++i) {
      if (take(entries[static_cast<std::size_t>(i)], completions[filled])) ++filled;
    }
    return filled;
  }

  void stop() noexcept override {
    is_stopped_ = true;
    for (auto& connection : connections_) connection->close();
  }

 private:
  static constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

  /// What is registered, if anything, becomes the region.
  static Status adopt(ibv_mr* registered, void* memory, std::size_t bytes, Region& region) noexcept {
    if (registered == nullptr) return Status::refused;
    region.memory = static_cast<std::byte*>(memory);
    region.bytes = bytes;
    region.address = reinterpret_cast<std::uintptr_t>(memory);
    region.key = registered->rkey;
    region.handle = registered;
    return Status::ok;
  }

  /// As the i-th of the list. It gets the place that is free after those before it.
  void write_request(std::size_t i, const Post& post) noexcept {
    const std::size_t place = free_[free_.size() - 1 - i];
    contexts_[place] = post.context;
    ibv_sge* pieces = pieces_.data() + i * verbs::most_entries;
    for (std::size_t k = 0; k < post.local.size(); ++k) {
      const Piece& piece = post.local[k];
      pieces[k] = {reinterpret_cast<std::uintptr_t>(piece.memory), static_cast<std::uint32_t>(piece.bytes),
                   static_cast<const ibv_mr*>(piece.region->handle)->lkey};
    }
    ibv_send_wr& request = requests_[i];
    request = {};
    request.wr_id = place + 1;
    request.sg_list = pieces;
    request.num_sge = static_cast<int>(post.local.size());
    request.opcode = post.opcode == Opcode::read ? IBV_WR_RDMA_READ
                     : post.has_immediate        ? IBV_WR_RDMA_WRITE_WITH_IMM
                                                 : IBV_WR_RDMA_WRITE;
    request.imm_data = htobe32(post.immediate);
    request.wr.rdma.remote_addr = post.remote;
    request.wr.rdma.rkey = static_cast<std::uint32_t>(post.key);
  }

  /// False: of no concern to the caller. A receive has the number 0, an operation of ours its place plus one.
  bool take(const ibv_wc& entry, Completion& completion) noexcept {
    completion = {};
    if (entry.wr_id == 0) {
      if (entry.status != IBV_WC_SUCCESS) return false;
      for (auto& connection : connections_) {
        if (connection->pair() != nullptr && connection->pair()->qp_num == entry.qp_num) connection->post_receive();
      }
      completion.kind = Completion::Kind::arrived;
      completion.immediate = be32toh(entry.imm_data);
      return true;
    }
    completion.status = status_of(entry.status);
    completion.context = contexts_[entry.wr_id - 1];
    free_.push_back(entry.wr_id - 1);
    return true;
  }

  std::unique_ptr<Device> device_;  // closed last
  verbs::GpuMemory gpu_memory_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::uint64_t> contexts_;  ///< of operations under way, by place
  std::vector<std::size_t> free_;        ///< places
  std::vector<ibv_send_wr> requests_;    ///< of the list that is being posted
  std::vector<ibv_sge> pieces_;
  bool is_stopped_ = false;
};

}  // namespace

std::unique_ptr<Endpoint> open_verbs(const std::string& name, std::string& why) noexcept try {
  const verbs::Library* library = verbs::library(why);
  if (library == nullptr) return nullptr;
  auto device = std::make_unique<Device>(*library);
  const char* missing = device->open(name);
  if (missing == nullptr) return std::make_unique<VerbsEndpoint>(std::move(device));
  why = std::string("libibverbs: ") + missing;
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace gapless::fabric
