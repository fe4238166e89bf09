// The schemes of src/transfer/rdma, by which two processes move one message over a fabric. No buffer alone can go that
// way: the sender offers (rdma/messages.hpp), and the receiver chooses.
#include "transfer/schemes/scheme.hpp"

namespace gapless::transfer::schemes {
namespace {

class ByFabric final : public Base {
 public:
  bool applies(const Buffer&) const noexcept override { return false; }
  double predict_ns(const Buffer&, Side) const noexcept override { return 0; }
  PoolBuffer packed_memory(const Buffer&) const noexcept override { return {}; }
  Result start(Movement&) const noexcept override { return Result::ok; }
  Result advance(Movement&) const noexcept override { return Result::ok; }
  Result wait(Movement&) const noexcept override { return Result::ok; }
};

constexpr ByFabric instance;

}  // namespace

constinit const Base& fabric_pipelined = instance;
constinit const Base& gather_write = instance;
constinit const Base& scatter_read = instance;
constinit const Base& multi_write = instance;

}  // namespace gapless::transfer::schemes
