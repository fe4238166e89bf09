// Pipelined (BC-SPUP, Wu et al., 2003, section 4): both sides copy, segment by segment, so that packing, moving and
// unpacking overlap. No memory of the program has to be registered, so every other scheme can fall back to this one.
// Packed bytes in GPU memory are registered, and are written straight from there.
#include "transfer/rdma/channel.hpp"
#include "transfer/rdma/segments.hpp"

namespace gapless::transfer::rdma {
namespace {

class Pipelined final : public Base {
 public:
  bool applies(const Ends& ends) const noexcept override { return ends.limits.has_immediates; }

  double predict_ns(const Ends& ends, const model::FabricProfile& profile) const noexcept override {
    return model::fabric_pipelined_ns(profile, message_of(ends));
  }

  Result accept(Message& message) const noexcept override { return segments::lend(message); }
  Result start(Message& message) const noexcept override {
    if (message.memory_.region != nullptr) message.user_memory_.acquire(message.memory_, {}, 1, fabric::Use::shared);
    return Result::under_way;
  }
  Result advance(Message& message) const noexcept override {
    return message.side_ == Side::sender ? segments::send(message, !message.user_memory_.is_held())
                                         : segments::take(message);
  }
};

const Pipelined object;

}  // namespace

const Base& pipelined = object;

}  // namespace gapless::transfer::rdma
