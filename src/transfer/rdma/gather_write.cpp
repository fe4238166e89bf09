// Gather-write (RWG-UP, Wu et al., 2003, 5.1): writes gather the sender's blocks into the receiver's staging segments,
// and the receiver unpacks each segment when it has arrived.
//
// The receiver does the same as in pipelined, so a sender whose memory cannot be registered packs after all.
#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/segments.hpp"

namespace gapless::transfer::rdma {
namespace {

class GatherWrite final : public Base {
 public:
  bool applies(const Ends& ends) const noexcept override {
    return ends.limits.has_immediates &&
           (ends.limits.is_ordered || model::most_gathering_writes(message_of(ends)) <= Immediate::most_counted);
  }

  double predict_ns(const Ends& ends, const model::FabricProfile& profile) const noexcept override {
    return model::gather_write_ns(profile, message_of(ends));
  }

  Result accept(Message& message) const noexcept override { return segments::lend(message); }

  Result start(Message& message) const noexcept override {
    const Channel& channel = message.channel_;
    message.user_memory_.acquire(message.memory_, channel.registration_cost(), channel.options().most_sender_regions,
                                 fabric::Use::shared);
    return Result::under_way;
  }

  Result advance(Message& message) const noexcept override {
    return message.side_ == Side::sender ? segments::send(message, !message.user_memory_.is_held())
                                         : segments::take(message);
  }
};

const GatherWrite object;

}  // namespace

const Base& gather_write = object;

}  // namespace gapless::transfer::rdma
