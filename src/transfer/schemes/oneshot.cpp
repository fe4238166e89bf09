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
    const double message_ns = host_message_ns(bytes) + page_locking_ns(bytes);
    if (is_contiguous(buffer)) return message_ns + model::copy_ns(model::profile().gpu, bytes);
    const auto model_side = side == Side::sender ? model::Side::sender : model::Side::receiver;
    return message_ns + model::oneshot_ns(model::profile().gpu, model_side, bytes);
  }
};

constexpr Oneshot instance;

}  // namespace

constinit const Base& oneshot = instance;

}  // namespace gapless::transfer::schemes
