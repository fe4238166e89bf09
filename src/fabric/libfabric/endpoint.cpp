// An endpoint of libfabric: keys, addresses, limits and completion levels as the provider wants them.
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "fabric/libfabric/libfabric.hpp"
#include "fabric/libfabric/library.hpp"

namespace gapless::fabric {
namespace {

using libfabric::Info;
using libfabric::Library;

/// Closes an object of libfabric.
struct Close {
  template <class Object>
  void operator()(Object* object) const noexcept {
    fi_close(&object->fid);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;

constexpr std::size_t most_outstanding = 512, most_entries = 64;

/// What libfabric hands back when an operation is complete. The first part is the provider's to use.
struct Operation {
  fi_context2 provider;
  std::uint64_t context;
};

Limits limits_of(const fi_info& info) noexcept {
  const fi_tx_attr& transmit = *info.tx_attr;
  const auto mode = static_cast<std::uint64_t>(info.domain_attr->mr_mode);
  Limits limits;
  limits.gather_entries = limits.scatter_entries = std::clamp<std::size_t>(transmit.iov_limit, 1, most_entries);
  limits.operation_bytes = std::min<std::size_t>(info.ep_attr->max_msg_size, std::size_t{1} << 30);
  limits.outstanding = std::clamp<std::size_t>(transmit.size, 1, most_outstanding);
  limits.has_immediates = info.domain_attr->cq_data_size >= 4;
  const std::uint64_t order = FI_ORDER_WAW | FI_ORDER_RMA_WAW;
  limits.is_ordered =
      (transmit.msg_order & order) == order && info.ep_attr->max_order_waw_size >= limits.operation_bytes;
  // A provider that wants pages to be there when memory is registered pins them, and does not see a new mapping there.
  limits.follows_mappings = (mode & (FI_MR_ALLOCATED | FI_MR_LOCAL)) == 0;
  return limits;
}

Status status_of(int error) noexcept {
  switch (error) {
    case FI_ECONNABORTED:
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_EHOSTDOWN:
    case FI_EHOSTUNREACH:
    case FI_ENOTCONN:
    case EPIPE:
    case FI_ESHUTDOWN:
    case FI_ETIMEDOUT:
      return Status::peer_failed;
    default:
      return Status::failed;
  }
}

class LibfabricEndpoint final : public Endpoint {
 public:
  LibfabricEndpoint(const Library& library, Info info)
      : library_(library), info_(std::move(info)), limits_(limits_of(*info_)), operations_(limits_.outstanding) {
    for (Operation& operation : operations_) free_.push_back(&operation);
  }

  ~LibfabricEndpoint() override { stop(); }

  /// Null, or what could not be had.
  const char* open() noexcept {
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_av* addresses = nullptr;
    fid_cq* queue = nullptr;
    fid_ep* endpoint = nullptr;
    if (library_.fabric(info_->fabric_attr, &fabric, nullptr) != 0) return "fabric";
    fabric_.reset(fabric);
    if (fi_domain(fabric, info_.get(), &domain, nullptr) != 0) return "domain";
    domain_.reset(domain);
    fi_av_attr address_attributes{};
    address_attributes.type = info_->domain_attr->av_type;
    if (fi_av_open(domain, &address_attributes, &addresses, nullptr) != 0) return "address vector";
    addresses_.reset(addresses);
    fi_cq_attr queue_attributes{};
    queue_attributes.format = FI_CQ_FORMAT_DATA;
    queue_attributes.size = 4 * limits_.outstanding;
    if (fi_cq_open(domain, &queue_attributes, &queue, nullptr) != 0) return "completion queue";
    queue_.reset(queue);
    if (fi_endpoint(domain, info_.get(), &endpoint, nullptr) != 0) return "endpoint";
    endpoint_.reset(endpoint);
    if (fi_ep_bind(endpoint, &addresses->fid, 0) != 0 ||
        fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV) != 0 || fi_enable(endpoint) != 0) {
      return "enabled endpoint";
    }
    return nullptr;
  }

  const char* name() const noexcept override { return info_->fabric_attr->prov_name; }
  const Limits& limits() const noexcept override { return limits_; }

  int open_peer() noexcept override {
    try {
      peers_.push_back(FI_ADDR_NOTAVAIL);
    } catch (const std::bad_alloc&) {
      return -1;
    }
    return static_cast<int>(peers_.size()) - 1;
  }

  std::vector<std::byte> local_address(int) noexcept override {
    std::array<std::byte, 512> address;
    std::size_t bytes = address.size();
    if (fi_getname(&endpoint_->fid, address.data(), &bytes) != 0) return {};
    return {address.begin(), address.begin() + static_cast<std::ptrdiff_t>(bytes)};
  }

  Status connect(int peer, std::span<const std::byte> address) noexcept override {
    fi_addr_t inserted = FI_ADDR_NOTAVAIL;
    if (fi_av_insert(addresses_.get(), address.data(), 1, &inserted, 0, nullptr) != 1) return Status::peer_failed;
    peers_[static_cast<std::size_t>(peer)] = inserted;
    return Status::ok;
  }

  Status register_memory(void* memory, std::size_t bytes, Region& region) noexcept override {
    fid_mr* registered = nullptr;
    const int error = fi_mr_reg(domain_.get(), memory, bytes, access, 0, next_key_++, 0, &registered, nullptr);
    return error == 0 ? adopt(registered, memory, bytes, region) : Status::refused;
  }

  Status register_gpu_memory(void* memory, std::size_t bytes, int device, Region& region) noexcept override {
    if ((info_->caps & FI_HMEM) == 0) return Status::refused;
    const iovec all{memory, bytes};
    fi_mr_attr attributes{};
    attributes.mr_iov = &all;
    attributes.iov_count = 1;
    attributes.access = access;
    attributes.requested_key = next_key_++;
    attributes.iface = FI_HMEM_CUDA;
    attributes.device.cuda = device;
    fid_mr* registered = nullptr;
    const int error = fi_mr_regattr(domain_.get(), &attributes, 0, &registered);
    return error == 0 ? adopt(registered, memory, bytes, region) : Status::refused;
  }

  void deregister(Region& region) noexcept override {
    if (region.handle != nullptr) fi_close(&static_cast<fid_mr*>(region.handle)->fid);
    region.handle = nullptr;
  }

  Posted post(int peer, std::span<const Post> list) noexcept override {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (endpoint_ == nullptr) return {i, Status::failed};
      if (free_.empty()) return {i, Status::again};
      const auto error = issue(peers_[static_cast<std::size_t>(peer)], list[i], i + 1 < list.size());
      if (error == -FI_EAGAIN) return {i, Status::again};
      if (error != 0) return {i, status_of(static_cast<int>(-error))};
    }
    return {list.size(), Status::ok};
  }

  std::size_t poll(std::span<Completion> completions) noexcept override {
    if (endpoint_ == nullptr) return 0;
    std::array<fi_cq_data_entry, 32> entries;
    const auto count = fi_cq_read(queue_.get(), entries.data(), std::min(entries.size(), completions.size()));
    if (count == -FI_EAVAIL) return poll_error(completions);
    if (count <= 0) return 0;
    for (ssize_t i = 0; i < count; ++i) {
      completions[static_cast<std::size_t>(i)] = completion_of(entries[static_cast<std::size_t>(i)]);
    }
    return static_cast<std::size_t>(count);
  }

  void stop() noexcept override { endpoint_.reset(); }

 private:
  static constexpr std::uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

  /// What the provider has registered becomes the region.
  Status adopt(fid_mr* registered, void* memory, std::size_t bytes, Region& region) noexcept {
    const auto mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
    const bool is_bound = (mode & FI_MR_ENDPOINT) == 0 ||
                          (fi_mr_bind(registered, &endpoint_->fid, 0) == 0 && fi_mr_enable(registered) == 0);
    if (!is_bound || fi_mr_key(registered) == FI_KEY_NOTAVAIL) {
      fi_close(&registered->fid);
      return Status::refused;
    }
    region.memory = static_cast<std::byte*>(memory);
    region.bytes = bytes;
    region.address = (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uintptr_t>(memory) : 0;
    region.key = fi_mr_key(registered);
    region.handle = registered;
    return Status::ok;
  }

  ssize_t issue(fi_addr_t peer, const Post& post, bool has_more) noexcept {
    std::array<iovec, most_entries> pieces;
    std::array<void*, most_entries> descriptors;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < post.local.size(); ++i) {
      pieces[i] = {post.local[i].memory, post.local[i].bytes};
      descriptors[i] = fi_mr_desc(static_cast<fid_mr*>(post.local[i].region->handle));
      bytes += post.local[i].bytes;
    }
    const fi_rma_iov remote{post.remote, bytes, post.key};
    Operation* operation = free_.back();
    operation->context = post.context;
    const fi_msg_rma message{.msg_iov = pieces.data(),
                             .desc = descriptors.data(),
                             .iov_count = post.local.size(),
                             .addr = peer,
                             .rma_iov = &remote,
                             .rma_iov_count = 1,
                             .context = operation,
                             .data = post.immediate};
    const std::uint64_t flags = FI_COMPLETION | (has_more ? FI_MORE : 0);
    const auto error = post.opcode == Opcode::read
                           ? fi_readmsg(endpoint_.get(), &message, flags)
                           : fi_writemsg(endpoint_.get(), &message,
                                         flags | FI_DELIVERY_COMPLETE | (post.has_immediate ? FI_REMOTE_CQ_DATA : 0));
    if (error == 0) free_.pop_back();
    return error;
  }

  Completion completion_of(const fi_cq_data_entry& entry) noexcept {
    Completion completion;
    if ((entry.flags & FI_REMOTE_CQ_DATA) != 0 && (entry.flags & FI_REMOTE_WRITE) != 0) {
      completion.kind = Completion::Kind::arrived;
      completion.immediate = static_cast<std::uint32_t>(entry.data);
    } else {
      give_back(entry.op_context, completion);
    }
    return completion;
  }

  std::size_t poll_error(std::span<Completion> completions) noexcept {
    fi_cq_err_entry entry{};
    if (fi_cq_readerr(queue_.get(), &entry, 0) != 1 || entry.op_context == nullptr) return 0;
    completions[0] = {};
    completions[0].status = status_of(entry.err);
    give_back(entry.op_context, completions[0]);
    return 1;
  }

  void give_back(void* context, Completion& completion) noexcept {
    auto* operation = static_cast<Operation*>(context);
    completion.context = operation->context;
    free_.push_back(operation);
  }

  const Library& library_;
  Info info_;
  Limits limits_;
  std::vector<Operation> operations_;
  std::vector<Operation*> free_;
  std::vector<fi_addr_t> peers_;
  std::uint64_t next_key_ = 1;
  Owned<fid_fabric> fabric_;  // closed last
  Owned<fid_domain> domain_;
  Owned<fid_av> addresses_;
  Owned<fid_cq> queue_;
  Owned<fid_ep> endpoint_;
};

}  // namespace

std::unique_ptr<Endpoint> open_libfabric(const std::string& provider, std::string& why, bool with_gpus) noexcept try {
  const Library* library = libfabric::library(why);
  if (library == nullptr) return nullptr;
  Info info = libfabric::find_provider(*library, provider, with_gpus, why);
  if (info == nullptr) return nullptr;
  auto endpoint = std::make_unique<LibfabricEndpoint>(*library, std::move(info));
  const char* missing = endpoint->open();
  if (missing == nullptr) return endpoint;
  why = std::string("libfabric's ") + endpoint->name() + " gives no " + missing;
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace gapless::fabric
