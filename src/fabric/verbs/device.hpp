// A device with an active port, its protection domain and its completion queue.
#pragma once

#include "fabric/remote/endpoint.hpp"
#include "fabric/verbs/library.hpp"

namespace gapless::fabric::verbs {

constexpr std::size_t most_entries = 64;

class Device {
 public:
  explicit Device(const Library& library) noexcept : library(library) {}
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Null, or what could not be had. `name` as in open_verbs().
  const char* open(const std::string& name) noexcept;

  const Library& library;
  ibv_context* context = nullptr;
  ibv_pd* domain = nullptr;
  ibv_cq* queue = nullptr;
  ibv_device_attr attributes{};
  ibv_port_attr port{};
  std::uint8_t port_number = 1;
  ibv_gid gid{};
  std::uint8_t gid_index = 0;
  std::string name;
  Limits limits;

  bool is_ethernet() const noexcept { return port.link_layer == IBV_LINK_LAYER_ETHERNET; }
  std::uint32_t reads_at_once() const noexcept;

 private:
  bool find(const std::string& wanted) noexcept;
  bool find_active_port() noexcept;
  void find_gid() noexcept;
};

}  // namespace gapless::fabric::verbs
