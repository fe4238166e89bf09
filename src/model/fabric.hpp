// What it costs to move bytes between nodes, and what that predicts of each way that a message can go by a fabric (Wu
// et al., 2003, section 6).
//
// Software providers take microseconds for an operation whatever it carries; hardware posts in a tenth of
// that. Registering memory is taken to cost the same with both.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/measured.hpp"

namespace gapless::model {

/// The figures that stand here are for libfabric's tcp within a machine.
struct FabricProfile {
  double operation_ns = 5000;      ///< one operation of a list
  double byte_ns = 0.4;            ///< on the way
  double read_byte_ns = 0.5;       ///< of reads, which are slower than writes (Wu et al., 2003, 5.2)
  double notification_ns = 5000;   ///< a message of a few bytes that a process waits for
  double copied_byte_ns = 0.1;     ///< packing or unpacking
  double copied_block_ns = 5;      ///< and for each block
  double registration_ns = 1500;   ///< registering and deregistering one region
  double registered_page_ns = 60;  ///< for each page of it
  /// The share of packing and unpacking that other segments' way hides: 1 where the fabric moves bytes by itself, 0
  /// where that takes the cores that would pack.
  double overlap = 0;
  double handshake_ns = 0;  ///< what a message takes beside all that; 0: not measured
};

/// The same for libfabric's shm.
inline constexpr FabricProfile shm_profile = {
    .operation_ns = 1600, .byte_ns = 0.1, .read_byte_ns = 0.12, .notification_ns = 2000, .overlap = 0.5};
/// For hardware: from the literature, not measured.
inline constexpr FabricProfile rdma_profile = {
    .operation_ns = 300, .byte_ns = 0.05, .read_byte_ns = 0.07, .notification_ns = 1500, .overlap = 1};

/// What is built in for a fabric of that name (GAPLESS_FABRIC).
FabricProfile fabric_profile(std::string_view fabric) noexcept;

/// What `gapless calibrate` has measured of a fabric between two processes of that kind.
struct MeasuredFabric {
  std::string fabric;
  Pair pair = Pair::other_node;
  double operation_ns = 0, byte_ns = 0, notification_ns = 0, copied_byte_ns = 0, overlap = 0, handshake_ns = 0;
};
/// The same with what is measured in the place of what is built in. Reads cost as many times as much as there.
FabricProfile fabric_profile(std::string_view fabric, Pair pair, std::span<const MeasuredFabric> measured) noexcept;

/// One side's memory.
struct FabricSide {
  double blocks = 1;
  double reach = 0;  ///< bytes from the first to the last, gaps included
};

/// A message, and what the provider lets one operation carry.
struct FabricMessage {
  double bytes = 0;
  FabricSide sender, receiver;
  double segment_bytes = 1;
  double operation_bytes = 1;
  double gather_entries = 1;
  double scatter_entries = 1;
  bool registers_each = false;  ///< registrations end with their message
  bool is_ordered = true;       ///< a write's immediate does not overtake the writes before it
};

// From the sender's start to the last byte in the receiver's memory, in nanoseconds, but for the handshake of a header
// and a reply. Thread-safe.

/// The sender packs, the MPI library moves the bytes in one operation by a fabric like this one, the receiver unpacks.
double fabric_packed_ns(const FabricProfile& profile, const FabricMessage& message) noexcept;
double fabric_pipelined_ns(const FabricProfile& profile, const FabricMessage& message) noexcept;
double gather_write_ns(const FabricProfile& profile, const FabricMessage& message) noexcept;
double scatter_read_ns(const FabricProfile& profile, const FabricMessage& message) noexcept;
double multi_write_ns(const FabricProfile& profile, const FabricMessage& message) noexcept;

/// How many segments a message of so many bytes is soonest moved in, where both sides pack: each takes an operation,
/// and hides a part of the copies.
double best_segments(const FabricProfile& profile, double bytes) noexcept;

/// Writes that gather one segment of the sender's, at most.
double most_gathering_writes(const FabricMessage& message) noexcept;

}  // namespace gapless::model
