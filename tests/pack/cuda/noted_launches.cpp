#include "noted_launches.hpp"

#include "pack/gpu/batch/issue.hpp"

namespace gapless::pack::gpu {

cudaError_t launch(const Launch&, const Queue&, const Completion& completion) noexcept { return launched(completion); }
cudaError_t launch(const BatchPart&, const Queue&, const Completion& completion) noexcept {
  return launched(completion);
}
cudaError_t launch(const BatchTable& batch, std::uint32_t, const Queue&) noexcept { return launched(batch.completion); }
cudaError_t launch(const PairLaunch&, const Queue&, const Completion& completion) noexcept {
  return launched(completion);
}
cudaError_t launch(const PairBatch&, const Queue&, const Completion& completion) noexcept {
  return launched(completion);
}

}  // namespace gapless::pack::gpu
