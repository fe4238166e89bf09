#include "fabric/verbs/connection.hpp"

#include <algorithm>

namespace gapless::fabric::verbs {
namespace {

constexpr std::uint32_t receives = 256;
constexpr std::uint32_t first_number = 0;  // of packets

}  // namespace

bool Connection::open() noexcept {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = device_.queue;
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  attributes.cap.max_send_wr = static_cast<std::uint32_t>(device_.limits.outstanding);
  attributes.cap.max_send_sge = static_cast<std::uint32_t>(device_.limits.gather_entries);
  attributes.cap.max_recv_wr = std::min(receives, static_cast<std::uint32_t>(device_.attributes.max_qp_wr));
  attributes.cap.max_recv_sge = 1;
  const std::uint32_t wanted = attributes.cap.max_recv_wr;
  pair_ = device_.library.create_qp(device_.domain, &attributes);
  if (pair_ == nullptr || !to_init()) return false;
  for (std::uint32_t i = 0; i < wanted; ++i) {
    if (!post_receive()) return false;
  }
  return true;
}

bool Connection::post_receive() noexcept {
  ibv_recv_wr receive{}, *bad = nullptr;
  return ibv_post_recv(pair_, &receive, &bad) == 0;
}

ConnectionAddress Connection::address() const noexcept {
  return {device_.gid, pair_->qp_num, device_.port.lid, static_cast<std::uint8_t>(device_.port.active_mtu)};
}

bool Connection::connect(const ConnectionAddress& peer) noexcept { return to_receive(peer) && to_send(); }

bool Connection::to_init() noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device_.port_number;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  return device_.library.modify_qp(pair_, &attributes,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

bool Connection::to_receive(const ConnectionAddress& peer) noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min<int>(peer.mtu, device_.port.active_mtu));
  attributes.dest_qp_num = peer.queue_pair;
  attributes.rq_psn = first_number;
  attributes.max_dest_rd_atomic = static_cast<std::uint8_t>(device_.reads_at_once());
  attributes.min_rnr_timer = 12;  // 0.64 ms until a sender that found no receive tries again
  attributes.ah_attr.dlid = peer.lid;
  attributes.ah_attr.port_num = device_.port_number;
  if (device_.is_ethernet()) {
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = peer.gid;
    attributes.ah_attr.grh.sgid_index = device_.gid_index;
    attributes.ah_attr.grh.hop_limit = 64;
  }
  return device_.library.modify_qp(pair_, &attributes,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0;
}

bool Connection::to_send() noexcept {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;   // 67 ms until a packet is sent again
  attributes.retry_cnt = 7;  // then the peer is gone
  attributes.rnr_retry = 7;  // for ever: a peer that computes takes no receives
  attributes.sq_psn = first_number;
  attributes.max_rd_atomic = static_cast<std::uint8_t>(device_.reads_at_once());
  return device_.library.modify_qp(pair_, &attributes,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                       IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

void Connection::close() noexcept {
  if (pair_ != nullptr) device_.library.destroy_qp(pair_);
  pair_ = nullptr;
}

}  // namespace gapless::fabric::verbs
