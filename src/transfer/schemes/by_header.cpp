// The schemes by which two processes move one message beside the MPI library. No buffer alone can go such a way: the
// sender offers it in a header (headers/offers.hpp), and the receiver chooses.
#include "model/model.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class ByHeader : public Base {
 public:
  bool applies(const Buffer&) const noexcept override { return false; }
  /// Of the movement alone; not known.
  double predict_ns(const Buffer&, Side) const noexcept override { return model::never_ns; }
  PoolBuffer packed_memory(const Buffer&) const noexcept override { return {}; }
  Result start(Movement&) const noexcept override { return Result::ok; }
  Result advance(Movement&) const noexcept override { return Result::ok; }
  Result wait(Movement&) const noexcept override { return Result::ok; }
};

/// One job of each GPU.
class Direct final : public ByHeader {
 public:
  double predict_ns(const Buffer& buffer, Side) const noexcept override {
    const model::GpuProfile& gpu = model::profile().gpu;
    return gpu.launch_and_wait_ns + static_cast<double>(buffer.size()) / gpu.pack_bytes_per_ns;
  }
};

constexpr ByHeader instance;
constexpr Direct direct_instance;

}  // namespace

constinit const Base& slots = instance;
constinit const Base& direct = direct_instance;
constinit const Base& fabric_pipelined = instance;
constinit const Base& gather_write = instance;
constinit const Base& scatter_read = instance;
constinit const Base& multi_write = instance;

}  // namespace gapless::transfer::schemes
