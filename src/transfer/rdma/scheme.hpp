// What an RDMA scheme is: an object without state that says whether it serves two sides and how long it would take, and
// takes a message's two sides through it.
//
// To add one: a file here, its name in rdma::Scheme, and its place in choose.cpp (of).
#pragma once

#include <optional>

#include "fabric/remote/endpoint.hpp"
#include "model/fabric.hpp"
#include "transfer/rdma/message.hpp"

namespace gapless::transfer::rdma {

/// All that a choice is made from.
struct Ends {
  Blocks sender, receiver;
  fabric::Limits limits;
  std::uint64_t segment_bytes = 0;
};

/// As the model sees it.
model::FabricMessage message_of(const Ends& ends) noexcept;

class Base {
 public:
  virtual bool applies(const Ends& ends) const noexcept = 0;
  /// From the sender's start to the last byte in the receiver's memory, in nanoseconds.
  virtual double predict_ns(const Ends& ends, const model::FabricProfile& profile) const noexcept = 0;

  /// Receiver: gets what the sender has to know, and puts it into the reply. refused: not to be had now.
  virtual Result accept(Message& message) const noexcept = 0;
  /// Sender: has the reply.
  virtual Result start(Message& message) const noexcept = 0;
  /// Either: goes on, without waiting.
  virtual Result advance(Message& message) const noexcept = 0;

 protected:
  ~Base() = default;
};

extern const Base& pipelined;
extern const Base& gather_write;
extern const Base& scatter_read;
extern const Base& multi_write;

const Base& of(Scheme scheme) noexcept;

/// Those that memory can go by at that side, bits by Scheme: a CPU neither packs nor unpacks GPU memory.
unsigned schemes_of(const Memory& memory, Side side) noexcept;

/// Bytes of a segment of a message: from 16 KiB on (Wu et al., 2003, 7.2) as many segments as the model says, eight if
/// that many hide more than they take, none longer than `most`.
std::uint64_t segment_bytes_for(std::uint64_t bytes, std::uint64_t most, const model::FabricProfile& profile) noexcept;

/// The scheme with the least predicted time, of those that apply and are `allowed` (bits by Scheme). Pipelined where
/// there is none.
Scheme choose(const Ends& ends, const model::FabricProfile& profile, unsigned allowed = ~0u) noexcept;

/// The same where the sender may also pack all of it and leave the bytes to the MPI library: none where that is
/// predicted to be as soon as any scheme that applies.
std::optional<Scheme> choose_beside_packed(const Ends& ends, const model::FabricProfile& profile) noexcept;

/// Is one of the schemes sooner than the library's ways, of which the soonest takes `others_ns` from the call to the
/// last byte? Where that is not measured (not finite), or the handshake is not: sooner than packed, as predicted.
bool is_sooner_than_others(const Ends& ends, const model::FabricProfile& profile, double others_ns) noexcept;

}  // namespace gapless::transfer::rdma
