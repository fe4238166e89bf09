// staged: a GPU kernel into GPU memory, and a copy of the packed bytes to the host; or the other way about (Pearson et
// al., 2021, section 5). GPU memory. Without memory to stage in, oneshot.
#include "model/model.hpp"
#include "transfer/blocking.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

using device::Status;

class Staged final : public Base {
 public:
  bool applies(const Buffer& buffer) const noexcept override { return !buffer.location.is_cpu_addressable(); }
  double predict_ns(const Buffer& buffer, Side) const noexcept override {
    const auto bytes = static_cast<std::size_t>(buffer.size());
    return model::staged_ns(model::profile().gpu, bytes) + host_message_ns(bytes) + page_locking_ns(bytes);
  }
  PoolBuffer packed_memory(const Buffer& buffer) const noexcept override { return oneshot.packed_memory(buffer); }

  Result start(Movement& movement) const noexcept override {
    const int device = movement.buffer.location.device;
    movement.between = PoolBuffer(device::MemoryKind::device, device, static_cast<std::size_t>(movement.end));
    if (!movement.between) return oneshot.start(movement);
    device::Runtime* const runtime = device::runtime();
    movement.stream = runtime->stream(device);
    if (movement.stream == nullptr) return Result::device_failed;
    const Status status = issue(*runtime, movement);
    if (status == Status::ok) return Result::under_way;
    static_cast<void>(runtime->synchronize(device, movement.stream));
    return result_of(status);
  }
  Result advance(Movement& movement) const noexcept override {
    if (!movement.between) return oneshot.advance(movement);
    bool is_idle = false;
    const Status status = device::runtime()->query(movement.buffer.location.device, movement.stream, is_idle);
    return status == Status::ok && !is_idle ? Result::under_way : wait(movement);
  }
  Result wait(Movement& movement) const noexcept override {
    if (!movement.between) return oneshot.wait(movement);
    const Status status = device::runtime()->synchronize(movement.buffer.location.device, movement.stream);
    movement.between = {};
    return result_of(status);
  }

 private:
  static Status issue(device::Runtime& runtime, const Movement& movement) noexcept {
    pack::GpuEngine* const engine = pack::gpu_engine();
    if (engine == nullptr) return Status::failed;
    const int device = movement.buffer.location.device;
    std::byte* const between = movement.between.data();
    const auto bytes = static_cast<std::size_t>(movement.end);
    const bool packs = movement.direction == pack::Direction::pack;
    pack::Job job = movement.job();
    job.packed = between;
    Status status = runtime.follow_default_stream(device, movement.stream);
    if (status == Status::ok && !packs) status = runtime.copy(between, movement.packed, bytes, device, movement.stream);
    if (status == Status::ok) status = engine->run({&job, 1}, device, movement.stream);
    if (status == Status::ok && packs) status = runtime.copy(movement.packed, between, bytes, device, movement.stream);
    return status;
  }
};

constexpr Staged instance;

}  // namespace

constinit const Base& staged = instance;

}  // namespace gapless::transfer::schemes
