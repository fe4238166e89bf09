// oneshot: a GPU kernel straight into mapped host memory, or out of it (Jenkins et al., 2014, section 3). GPU memory.
#include "model/model.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class Oneshot final : public OneJob<device::MemoryKind::pinned> {
 public:
  bool applies(const Buffer& buffer) const noexcept override { return !buffer.location.is_cpu_addressable(); }
  double predict_ns(const Buffer& buffer, Side side) const noexcept override {
    const auto bytes = static_cast<std::size_t>(buffer.size());
    const model::GpuProfile& gpu = model::profile().gpu;
    const double message_ns = host_message_ns(bytes) + page_locking_ns(bytes);
    if (is_contiguous(buffer)) return message_ns + model::copy_ns(gpu, bytes);
    return message_ns +
           (side == Side::sender ? model::oneshot_pack_ns(gpu, bytes) : model::oneshot_unpack_ns(gpu, bytes));
  }
};

constexpr Oneshot instance;

}  // namespace

constinit const Base& oneshot = instance;

}  // namespace gapless::transfer::schemes
