// device: a GPU kernel packs in GPU memory, and the MPI library sends from there; or the other way about (Pearson et
// al., 2021, section 5). GPU memory, under MPI libraries that read it.
#include "model/model.hpp"
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class Device final : public OneJob<device::MemoryKind::device> {
 public:
  bool applies(const Buffer& buffer) const noexcept override {
    return !buffer.location.is_cpu_addressable() && library_reads_gpu_memory();
  }
  double predict_ns(const Buffer& buffer, Side) const noexcept override {
    return model::device_ns(model::profile().gpu, static_cast<std::size_t>(buffer.size()));
  }
};

constexpr Device instance;

}  // namespace

constinit const Base& device = instance;

}  // namespace gapless::transfer::schemes
