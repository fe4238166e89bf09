// packed: the host engine packs into a pool buffer. Noncontiguous host memory.
#include "model/model.hpp"
#include "transfer/blocking.hpp"
#include "transfer/choice/choose.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class Packed final : public Base {
 public:
  bool applies(const Buffer& buffer) const noexcept override {
    return buffer.location.is_cpu_addressable() && !is_contiguous(buffer);
  }
  double predict_ns(const Buffer& buffer, Side side) const noexcept override {
    const model::Amount amount = amount_of(buffer);
    return -(side == Side::receiver ? model::received_saving_ns(amount) : model::message_saving_ns(amount));
  }
  PoolBuffer packed_memory(const Buffer& buffer) const noexcept override {
    return {device::MemoryKind::host, -1, static_cast<std::size_t>(buffer.size())};
  }

  Result start(Movement& movement) const noexcept override { return run_on_host(movement.job()); }
  Result advance(Movement&) const noexcept override { return Result::ok; }
  Result wait(Movement&) const noexcept override { return Result::ok; }
};

constexpr Packed instance;

}  // namespace

constinit const Base& packed = instance;

}  // namespace gapless::transfer::schemes
