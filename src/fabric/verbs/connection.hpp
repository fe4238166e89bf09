// A reliable connection to one peer, and the receives that immediates consume.
#pragma once

#include "fabric/verbs/device.hpp"

namespace gapless::fabric::verbs {

/// What the other end has to know.
struct ConnectionAddress {
  ibv_gid gid;
  std::uint32_t queue_pair;
  std::uint16_t lid;
  std::uint8_t mtu;
};

class Connection {
 public:
  explicit Connection(Device& device) noexcept : device_(device) {}
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Makes the queue pair and its receives.
  bool open() noexcept;
  ConnectionAddress address() const noexcept;
  bool connect(const ConnectionAddress& peer) noexcept;
  /// Ends all that is under way.
  void close() noexcept;

  ibv_qp* pair() const noexcept { return pair_; }
  /// One more immediate may arrive.
  bool post_receive() noexcept;

 private:
  bool to_init() noexcept;
  bool to_receive(const ConnectionAddress& peer) noexcept;
  bool to_send() noexcept;

  Device& device_;
  ibv_qp* pair_ = nullptr;
};

}  // namespace gapless::fabric::verbs
