// A fabric within one process, for tests: as strict as the strictest provider, and as faulty as a test wants.
//
// Bytes move when the endpoint that posted them is polled. Keys, bounds, limits and local regions are checked as
// hardware would check them. Endpoints of one network may belong to different threads.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <random>

#include "fabric/remote/endpoint.hpp"

namespace gapless::fabric {

/// What goes wrong, from now on.
struct LoopbackFaults {
  std::size_t registrations_left = std::numeric_limits<std::size_t>::max();  ///< later ones are refused
  std::size_t gpu_registrations_left = 0;
  std::size_t largest_registration = std::numeric_limits<std::size_t>::max();
  std::size_t operations_left = std::numeric_limits<std::size_t>::max();  ///< later ones fail
  bool stalls = false;                                                    ///< operations are taken, and never done
  bool is_connecting = false;  ///< operations are not taken, though there is room
  bool is_dead = false;        ///< the process is gone: what peers post to it ends in peer_failed
};

/// What every test wants to vary.
struct LoopbackShape {
  Limits limits{.gather_entries = 4,
                .scatter_entries = 4,
                .operation_bytes = std::size_t{1} << 20,
                .outstanding = 64,
                .has_immediates = true,
                .is_ordered = false,
                .posts_lists = true,
                .follows_mappings = true};
  bool virtual_addresses = true;  ///< peers name memory by virtual address, else by offset
  std::uint64_t seed = 0;         ///< of the order in which operations are done, where that is not theirs
};

class LoopbackNetwork;

class LoopbackEndpoint final : public Endpoint {
 public:
  LoopbackEndpoint(LoopbackNetwork& network, const LoopbackShape& shape);
  ~LoopbackEndpoint() override;

  const char* name() const noexcept override { return "loopback"; }
  const Limits& limits() const noexcept override { return shape_.limits; }
  int open_peer() noexcept override;
  std::vector<std::byte> local_address(int peer) noexcept override;
  Status connect(int peer, std::span<const std::byte> address) noexcept override;
  Status register_memory(void* memory, std::size_t bytes, Region& region) noexcept override;
  Status register_gpu_memory(void* memory, std::size_t bytes, int device, Region& region) noexcept override;
  void deregister(Region& region) noexcept override;
  Posted post(int peer, std::span<const Post> list) noexcept override;
  std::size_t poll(std::span<Completion> completions) noexcept override;
  void stop() noexcept override;

  LoopbackFaults faults;

  std::size_t regions() const noexcept { return regions_.size(); }     ///< registered now
  std::size_t gpu_attempts() const noexcept { return gpu_attempts_; }  ///< to register a GPU's memory
  std::size_t misuses() const noexcept { return misuses_; }            ///< operations beyond the limits
  std::size_t most_entries() const noexcept { return most_entries_; }  ///< of any operation so far
  std::size_t queued() const noexcept { return queue_.size(); }
  std::size_t untaken() const noexcept { return untaken_; }  ///< lists that came while it was connecting

 private:
  struct Operation {
    Post post;
    std::vector<Piece> pieces;
    int peer;
  };

  bool is_right(const Post& post) const noexcept;
  Status carry_out(const Operation& operation) noexcept;
  std::byte* resolve(std::uint64_t key, RemoteAddress address, std::size_t bytes) noexcept;

  LoopbackNetwork& network_;
  LoopbackShape shape_;
  std::mt19937_64 random_;
  int number_;              ///< in the network
  std::vector<int> peers_;  ///< their numbers, negative before they are connected
  std::map<std::uint64_t, Region> regions_;
  std::uint64_t next_key_ = 1;
  std::deque<Operation> queue_;
  std::deque<Completion> completions_;
  std::size_t misuses_ = 0, most_entries_ = 0, gpu_attempts_ = 0, untaken_ = 0;
};

/// Outlives its endpoints.
class LoopbackNetwork {
 private:
  friend class LoopbackEndpoint;
  std::mutex mutex_;
  std::vector<LoopbackEndpoint*> endpoints_;
};

}  // namespace gapless::fabric
