#include "blocking.hpp"

#include <memory>

#include "api/type.hpp"
#include "gpu.hpp"
#include "layout/algebra/facts.hpp"
#include "transfer/packing.hpp"

namespace gapless::bench {

Contestant blocking_calls(const Workload& work) {
  const layout::Datatype& type = work.type->datatype;
  const auto described = std::make_shared<const transfer::Described>(
      transfer::Described{type.layout, layout::facts_of(*type.layout), type.extent(), false});
  const layout::Offset count = work.count;
  return {"gapless", [=](const Spot& spot, gapless_direction direction, cudaStream_t) {
            const transfer::Buffer buffer{described.get(), count, spot.memory, device::locate(spot.memory)};
            const device::Location packed = device::locate(spot.packed);
            const transfer::Result result = direction == GAPLESS_PACK ? transfer::pack(buffer, spot.packed, packed)
                                                                      : transfer::unpack(buffer, spot.packed, packed);
            check(result == transfer::Result::ok ? cudaSuccess : cudaErrorUnknown, "packing as MPI_Pack does");
          }};
}

}  // namespace gapless::bench
