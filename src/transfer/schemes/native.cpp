// native: the buffer goes to the MPI library as it is. Host memory that is contiguous, or that the library moves
// sooner.
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class Native final : public MovesNothing {
 public:
  bool applies(const Buffer& buffer) const noexcept override { return buffer.location.is_cpu_addressable(); }
  double predict_ns(const Buffer&, Side) const noexcept override { return 0; }
};

constexpr Native instance;

}  // namespace

constinit const Base& native = instance;

}  // namespace gapless::transfer::schemes
