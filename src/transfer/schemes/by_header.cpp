// The schemes by which two processes move one message beside the MPI library. No buffer alone can go such a way: the
// sender offers it in a header (headers/offers.hpp), and the receiver chooses.
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class ByHeader final : public Base {
 public:
  bool applies(const Buffer&) const noexcept override { return false; }
  double predict_ns(const Buffer&, Side) const noexcept override { return 0; }
  PoolBuffer packed_memory(const Buffer&) const noexcept override { return {}; }
  Result start(Movement&) const noexcept override { return Result::ok; }
  Result advance(Movement&) const noexcept override { return Result::ok; }
  Result wait(Movement&) const noexcept override { return Result::ok; }
};

constexpr ByHeader instance;

}  // namespace

constinit const Base& slots = instance;
constinit const Base& direct = instance;
constinit const Base& fabric_pipelined = instance;
constinit const Base& gather_write = instance;
constinit const Base& scatter_read = instance;
constinit const Base& multi_write = instance;

}  // namespace gapless::transfer::schemes
