// What an RDMA scheme is: an object without state that says whether the scheme serves two sides, predicts the message's
// time, and moves each side of a message on.
//
// To add one: a file here, its name in rdma::Scheme, and its place in choose.cpp (of).
#pragma once

#include <optional>

#include "fabric/remote/endpoint.hpp"
#include "model/fabric.hpp"
#include "transfer/rdma/message.hpp"

namespace gapless::transfer::rdma {

/// All that a choice depends on.
struct Ends {
  Blocks sender, receiver;
  fabric::Limits limits;
  std::uint64_t segment_bytes = 0;
};

/// The message as the model sees it.
model::FabricMessage message_of(const Ends& ends) noexcept;

class Base {
 public:
  virtual bool applies(const Ends& ends) const noexcept = 0;
  /// From the sender's start to the last byte in the receiver's memory, in nanoseconds.
  virtual double predict_ns(const Ends& ends, const model::FabricProfile& profile) const noexcept = 0;

  /// Receiver: takes segments or registers memory, and puts what the sender has to know into the reply. refused:
  /// nothing is to be had now.
  virtual Result accept(Message& message) const noexcept = 0;
  /// Sender: begins, with the receiver's reply.
  virtual Result start(Message& message) const noexcept = 0;
  /// Either side: goes on without waiting.
  virtual Result advance(Message& message) const noexcept = 0;

 protected:
  ~Base() = default;
};

extern const Base& pipelined;
extern const Base& gather_write;
extern const Base& scatter_read;
extern const Base& multi_write;

const Base& of(Scheme scheme) noexcept;

/// The schemes that memory can go by at that side, as bits by Scheme: a CPU neither packs nor unpacks GPU memory.
unsigned schemes_of(const Memory& memory, Side side) noexcept;

/// Bytes of a segment of a message: messages from 16 KiB on (Wu et al., 2003, 7.2) have as many segments as the model
/// says, up to eight, none longer than `most`; shorter messages have one.
std::uint64_t segment_bytes_for(std::uint64_t bytes, std::uint64_t most, const model::FabricProfile& profile) noexcept;

/// The scheme with the least predicted time, of those that apply and are `allowed` (bits by Scheme). Pipelined where no
/// scheme applies.
Scheme choose(const Ends& ends, const model::FabricProfile& profile, unsigned allowed = ~0u) noexcept;

/// The same, where the sender may also pack the whole message and leave the bytes to the MPI library: none where the
/// library is predicted to be as soon as the best scheme.
std::optional<Scheme> choose_beside_packed(const Ends& ends, const model::FabricProfile& profile) noexcept;

/// Is one of the schemes sooner than the library's ways, of which the soonest takes `others_ns` from the call to the
/// last byte? Where `others_ns` is not finite (not measured), or the profile has no handshake: is one predicted to be
/// sooner than packed bytes by the library?
bool is_sooner_than_others(const Ends& ends, const model::FabricProfile& profile, double others_ns) noexcept;

}  // namespace gapless::transfer::rdma
