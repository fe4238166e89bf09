// The schemes by which two processes move one message beside the MPI library. `choose` never takes one of them for a
// buffer: the sender offers the message in a header (transfer/headers/offers.hpp), and the receiver chooses.
#include "model/model.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class ByHeader : public MovesNothing {
 public:
  bool applies(const Buffer&) const noexcept override { return false; }
  /// Unknown for every scheme here but `direct`.
  double predict_ns(const Buffer&, Side) const noexcept override { return model::never_ns; }
};

/// Each of the two GPUs runs one job.
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
