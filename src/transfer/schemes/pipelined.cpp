// pipelined: a GPU kernel packs one page-locked segment while the CPU copies another one into host memory, which the
// MPI library sends; or the other way about. GPU memory, where no page-locked memory is to be had for the whole
// message, or a header will most likely come in the place of the packed bytes.
#include "model/model.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class Pipelined final : public Base {
 public:
  bool applies(const Buffer& buffer) const noexcept override { return !buffer.location.is_cpu_addressable(); }
  double predict_ns(const Buffer& buffer, Side) const noexcept override {
    const auto bytes = static_cast<std::size_t>(buffer.size());
    return model::pipelined_ns(model::profile().gpu, bytes) + host_message_ns(bytes);
  }
  PoolBuffer packed_memory(const Buffer& buffer) const noexcept override {
    const auto bytes = static_cast<std::size_t>(buffer.size());
    if (!Segments::are_to_be_had(buffer.location.device, bytes)) return {};
    return {device::MemoryKind::host, -1, bytes};
  }

  Result start(Movement& movement) const noexcept override {
    movement.segments.emplace();
    const Result result = movement.segments->begin(movement.job(), movement.buffer.location.device);
    if (result != Result::ok) return end(movement, result);
    movement.segments->allow(movement.end);
    return advance(movement);
  }
  Result advance(Movement& movement) const noexcept override { return end(movement, movement.segments->advance()); }
  Result wait(Movement& movement) const noexcept override { return end(movement, movement.segments->wait()); }

 private:
  static Result end(Movement& movement, Result result) noexcept {
    if (result != Result::under_way) movement.segments.reset();
    return result;
  }
};

constexpr Pipelined instance;

}  // namespace

constinit const Base& pipelined = instance;

}  // namespace gapless::transfer::schemes
