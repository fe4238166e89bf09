#include "model/fabric.hpp"

#include <algorithm>
#include <cmath>

namespace gapless::model {
namespace {

double segments(const FabricMessage& message) noexcept {
  return std::max(1.0, std::ceil(message.bytes / message.segment_bytes));
}

/// Operations that carry packed bytes, `most` each.
double operations_of(double bytes, double most) noexcept { return std::max(1.0, std::ceil(bytes / most)); }

/// Operations that carry a side's blocks, `entries` each: Wu et al.'s arithmetic, blocks / gather limit.
double operations_of(const FabricMessage& message, const FabricSide& side, double entries, double most) noexcept {
  return std::max(std::ceil(side.blocks / entries), operations_of(message.bytes, most));
}

/// The most that one carries where the message goes in segments.
double most_in_segments(const FabricMessage& message) noexcept {
  return std::min(message.operation_bytes, message.segment_bytes);
}

double copy_ns(const FabricProfile& profile, const FabricMessage& message, const FabricSide& side) noexcept {
  return message.bytes * profile.copied_byte_ns + side.blocks * profile.copied_block_ns;
}

double write_ns(const FabricProfile& profile, const FabricMessage& message, double operations) noexcept {
  return operations * profile.operation_ns + message.bytes * profile.byte_ns;
}

/// With the two notifications of each segment.
double read_ns(const FabricProfile& profile, const FabricMessage& message, double operations) noexcept {
  return operations * profile.operation_ns + message.bytes * profile.read_byte_ns +
         2 * segments(message) * profile.notification_ns;
}

/// Registrations are kept where they may be, and most programs send from few buffers (Wu et al., 2003, section 6).
double registration_ns(const FabricProfile& profile, const FabricMessage& message, const FabricSide& side) noexcept {
  constexpr double page = 4096;
  return message.registers_each ? profile.registration_ns + side.reach / page * profile.registered_page_ns : 0;
}

/// Steps of which segments are under way at the same time: as much as the fabric lets overlap of all but the slowest.
double overlapped_ns(const FabricProfile& profile, const FabricMessage& message, double pack, double move,
                     double unpack) noexcept {
  const double all = pack + move + unpack, slowest = std::max({pack, move, unpack});
  return all - profile.overlap * (all - slowest) * (1 - 1 / segments(message));
}

/// Where an immediate may overtake the writes before it, the last of them is waited for before the receiver is told.
double telling_ns(const FabricProfile& profile, const FabricMessage& message) noexcept {
  return message.is_ordered ? 0 : profile.notification_ns;
}

}  // namespace

FabricProfile fabric_profile(std::string_view fabric) noexcept {
  if (fabric == "tcp") return {};
  return fabric == "shm" ? shm_profile : rdma_profile;
}

FabricProfile fabric_profile(std::string_view fabric, Pair pair, std::span<const MeasuredFabric> measured) noexcept {
  FabricProfile profile = fabric_profile(fabric);
  const auto found = std::ranges::find_if(
      measured, [&](const MeasuredFabric& each) { return each.fabric == fabric && each.pair == pair; });
  if (found == measured.end()) return profile;
  profile.read_byte_ns *= found->byte_ns / profile.byte_ns;
  profile.byte_ns = found->byte_ns;
  profile.operation_ns = found->operation_ns;
  profile.notification_ns = found->notification_ns;
  profile.copied_byte_ns = found->copied_byte_ns;
  profile.overlap = std::clamp(found->overlap, 0.0, 1.0);
  profile.handshake_ns = found->handshake_ns;
  return profile;
}

double fabric_packed_ns(const FabricProfile& profile, const FabricMessage& message) noexcept {
  return copy_ns(profile, message, message.sender) +
         write_ns(profile, message, operations_of(message.bytes, message.operation_bytes)) +
         telling_ns(profile, message) + copy_ns(profile, message, message.receiver);
}

double fabric_pipelined_ns(const FabricProfile& profile, const FabricMessage& message) noexcept {
  const double operations = operations_of(message.bytes, most_in_segments(message));
  return overlapped_ns(profile, message, copy_ns(profile, message, message.sender),
                       write_ns(profile, message, operations), copy_ns(profile, message, message.receiver));
}

double gather_write_ns(const FabricProfile& profile, const FabricMessage& message) noexcept {
  const double operations = operations_of(message, message.sender, message.gather_entries, most_in_segments(message));
  return overlapped_ns(profile, message, 0, write_ns(profile, message, operations),
                       copy_ns(profile, message, message.receiver)) +
         registration_ns(profile, message, message.sender);
}

double scatter_read_ns(const FabricProfile& profile, const FabricMessage& message) noexcept {
  const double operations =
      operations_of(message, message.receiver, message.scatter_entries, most_in_segments(message));
  return overlapped_ns(profile, message, copy_ns(profile, message, message.sender),
                       read_ns(profile, message, operations), 0) +
         registration_ns(profile, message, message.receiver);
}

double multi_write_ns(const FabricProfile& profile, const FabricMessage& message) noexcept {
  // One write goes to one block of the receiver's.
  const double most = message.operation_bytes;
  const double operations = std::max(operations_of(message, message.receiver, 1, most),
                                     operations_of(message, message.sender, message.gather_entries, most));
  return write_ns(profile, message, operations) + telling_ns(profile, message) +
         registration_ns(profile, message, message.sender) + registration_ns(profile, message, message.receiver);
}

double best_segments(const FabricProfile& profile, double bytes) noexcept {
  // Of n segments, n operations and an n-th of what is hidden remain.
  const double hidden = profile.overlap * 2 * bytes * profile.copied_byte_ns;
  return std::max(1.0, std::sqrt(hidden / profile.operation_ns));
}

double most_gathering_writes(const FabricMessage& message) noexcept {
  // A segment's first and last blocks may be parts of blocks.
  const double all = operations_of(message, message.sender, message.gather_entries, most_in_segments(message));
  return std::ceil(all / segments(message)) + 2;
}

}  // namespace gapless::model
