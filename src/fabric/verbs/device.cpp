#include "fabric/verbs/device.hpp"

#include <algorithm>
#include <cstring>

namespace gapless::fabric::verbs {
namespace {

constexpr std::size_t most_outstanding = 128;
constexpr int queue_entries = 4096;

}  // namespace

Device::~Device() {
  if (queue != nullptr) library.destroy_cq(queue);
  if (domain != nullptr) library.dealloc_pd(domain);
  if (context != nullptr) library.close_device(context);
}

const char* Device::open(const std::string& wanted) noexcept {
  if (!find(wanted)) return "no device with an active port";
  find_gid();
  domain = library.alloc_pd(context);
  if (domain == nullptr) return "no protection domain";
  queue = library.create_cq(context, std::min(queue_entries, attributes.max_cqe), nullptr, nullptr, 0);
  if (queue == nullptr) return "no completion queue";

  limits.gather_entries = std::clamp<std::size_t>(static_cast<std::size_t>(attributes.max_sge), 1, most_entries);
  // Old devices say 0 where reads have no limit of their own.
  const auto reads = static_cast<std::size_t>(std::max(attributes.max_sge_rd, 0));
  limits.scatter_entries = reads == 0 ? limits.gather_entries : std::min(limits.gather_entries, reads);
  limits.operation_bytes = std::min<std::size_t>(port.max_msg_sz, std::size_t{1} << 30);
  limits.outstanding = std::min<std::size_t>(most_outstanding, static_cast<std::size_t>(attributes.max_qp_wr));
  limits.has_immediates = true;
  limits.is_ordered = true;  // of a reliable connection
  limits.posts_lists = true;
  limits.follows_mappings = false;  // pages are pinned
  return nullptr;
}

bool Device::find(const std::string& wanted) noexcept {
  int count = 0;
  ibv_device** list = library.get_device_list(&count);
  if (list == nullptr) return false;
  bool is_found = false;
  for (int i = 0; i < count && !is_found; ++i) {
    if (!wanted.empty() && wanted != library.get_device_name(list[i])) continue;
    context = library.open_device(list[i]);
    if (context == nullptr) continue;
    is_found = library.query_device(context, &attributes) == 0 && find_active_port();
    if (is_found) {
      name = library.get_device_name(list[i]);
    } else {
      library.close_device(context);
      context = nullptr;
    }
  }
  library.free_device_list(list);
  return is_found;
}

bool Device::find_active_port() noexcept {
  for (port_number = 1; port_number <= attributes.phys_port_cnt; ++port_number) {
    std::memset(&port, 0, sizeof port);
    // The library's function fills the part of the structure that it knows.
    auto* known = reinterpret_cast<_compat_ibv_port_attr*>(&port);
    if (library.query_port(context, port_number, known) == 0 && port.state == IBV_PORT_ACTIVE) return true;
  }
  return false;
}

/// Over Ethernet the address of IPv4, which routes; else the first that there is.
void Device::find_gid() noexcept {
  constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  library.query_gid(context, port_number, 0, &gid);
  for (int i = 0; i < port.gid_tbl_len && is_ethernet(); ++i) {
    ibv_gid candidate{};
    if (library.query_gid(context, port_number, i, &candidate) != 0) continue;
    if (std::memcmp(candidate.raw, mapped, sizeof mapped) != 0) continue;
    gid = candidate;
    gid_index = static_cast<std::uint8_t>(i);  // the last: RoCE version 2 comes after version 1
  }
}

std::uint32_t Device::reads_at_once() const noexcept {
  return static_cast<std::uint32_t>(
      std::clamp(std::min(attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom), 1, 16));
}

}  // namespace gapless::fabric::verbs
