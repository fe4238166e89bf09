// oneshot: a GPU kernel straight into mapped host memory, or out of it (Jenkins et al., 2014, section 3). GPU memory.
#include "model/model.hpp"
#include "transfer/blocking.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class Oneshot final : public Base {
 public:
  bool applies(const Buffer& buffer) const noexcept override { return !buffer.location.is_cpu_addressable(); }
  double predict_ns(const Buffer& buffer, Side side) const noexcept override {
    const auto bytes = static_cast<std::size_t>(buffer.size());
    if (is_contiguous(buffer)) return model::copy_ns(model::profile().gpu, bytes);
    const auto model_side = side == Side::sender ? model::Side::sender : model::Side::receiver;
    return model::oneshot_ns(model::profile().gpu, model_side, bytes);
  }
  PoolBuffer packed_memory(const Buffer& buffer) const noexcept override {
    return {device::MemoryKind::pinned, buffer.location.device, static_cast<std::size_t>(buffer.size())};
  }

  Result start(Movement& movement) const noexcept override {
    pack::GpuEngine* const engine = pack::gpu_engine();
    if (engine == nullptr) return Result::device_failed;
    const pack::Job job = movement.job();
    movement.ticket = engine->submit({&job, 1}, movement.buffer.location.device,
                                     reach_of(movement.direction, device::MemoryKind::pinned));
    return state_of(movement);
  }
  Result advance(Movement& movement) const noexcept override {
    pack::gpu_engine()->poll(movement.ticket);
    return state_of(movement);
  }
  Result wait(Movement& movement) const noexcept override {
    pack::gpu_engine()->wait(movement.ticket);
    return state_of(movement);
  }

 private:
  static Result state_of(const Movement& movement) noexcept {
    return movement.ticket.is_under_way() ? Result::under_way : result_of(movement.ticket.status);
  }
};

constexpr Oneshot instance;

}  // namespace

constinit const Base& oneshot = instance;

}  // namespace gapless::transfer::schemes
