// What the schemes' predictions are sums of.
#pragma once

#include <algorithm>
#include <cmath>

#include "transfer/rdma/scheme.hpp"

namespace gapless::transfer::rdma {

struct Prediction {
  const Ends& ends;
  const model::FabricProfile& profile;

  double segments() const noexcept {
    return std::max(1.0, std::ceil(static_cast<double>(ends.sender.bytes) / static_cast<double>(ends.segment_bytes)));
  }
  /// Operations that carry so many blocks, `entries` each: Wu et al.'s arithmetic, blocks / gather limit.
  double operations(std::size_t entries, const Blocks& side) const noexcept {
    const double blocks = static_cast<double>(side.count);
    return std::max({std::ceil(blocks / static_cast<double>(entries)), operations(1, side.bytes), 1.0});
  }
  /// Operations that carry packed bytes.
  double operations(std::size_t, std::uint64_t bytes) const noexcept {
    const auto most = std::min<std::uint64_t>(ends.limits.operation_bytes, ends.segment_bytes);
    return std::ceil(static_cast<double>(bytes) / static_cast<double>(most));
  }
  /// Of one segment, at most.
  double segment_operations(const Blocks& side) const noexcept {
    return std::ceil(operations(ends.limits.gather_entries, side) / segments()) + 2;
  }

  double copy(const Blocks& side) const noexcept {
    return static_cast<double>(side.bytes) * profile.copied_byte_ns +
           static_cast<double>(side.count) * profile.copied_block_ns;
  }
  double write(double operations) const noexcept {
    return operations * profile.operation_ns + static_cast<double>(ends.sender.bytes) * profile.byte_ns;
  }
  /// With the two notifications of each segment.
  double read(double operations) const noexcept {
    return operations * profile.operation_ns + static_cast<double>(ends.sender.bytes) * profile.read_byte_ns +
           2 * segments() * profile.notification_ns;
  }
  /// Of memory that is not registered yet. Registrations are kept where they may be, and most programs send from few
  /// buffers (Wu et al., 2003, section 6).
  double registration(const Blocks& side) const noexcept {
    if (ends.limits.follows_mappings) return 0;
    return profile.registration_ns + static_cast<double>(side.reach) / 4096 * profile.registered_page_ns;
  }
  /// Three steps, segment by segment: the slowest, and the others once.
  double overlapped(double pack, double move, double unpack) const noexcept {
    const double slowest = std::max({pack, move, unpack});
    return slowest + (pack + move + unpack - slowest) / segments();
  }
};

}  // namespace gapless::transfer::rdma
