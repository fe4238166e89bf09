// Packing straight into host memory that the GPU addresses (one-shot), against a pinned copy of as many bytes and
// against packing on the GPU followed by that copy; and the same way back.
#include "contestants/hand.hpp"
#include "gpu.hpp"
#include "tables/tables.hpp"

namespace gapless::bench {
namespace {

using Size = std::int64_t;

constexpr Size largest_captured = Size{4} << 20;  // beyond, unpacking in chunks is no part of a graph

void measure(const Setting& setting, const Workload& work, const Memory& host) {
  const Size bytes = work.packed_bytes();
  const std::vector<Spot> device_spots = setting.arena.one_spot();
  const std::vector<Spot> spots{{device_spots[0].memory, host.data()}};
  Contestant one_shot = gapless_calls(work);
  const Contestant copy = copies(bytes).back();
  char* const on_gpu = device_spots[0].packed;
  const Contestant pinned_copy{"pinned copy", [&](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
                                 copy.issue({on_gpu, spot.packed}, direction, stream);
                               }};
  const auto staged = [&](const Spot& spot, gapless_direction direction, cudaStream_t stream) {
    if (direction == GAPLESS_PACK) one_shot.issue({spot.memory, on_gpu}, direction, stream);
    pinned_copy.issue(spot, direction, stream);
    if (direction == GAPLESS_UNPACK) one_shot.issue({spot.memory, on_gpu}, direction, stream);
  };
  const Contestant two_steps{"packed on the GPU, then copied", staged};
  setting.arena.verify(work, {&one_shot, &two_steps}, spots);
  for (const gapless_direction direction : {GAPLESS_PACK, GAPLESS_UNPACK}) {
    one_shot.capturable = direction == GAPLESS_PACK || bytes < largest_captured;
    const std::vector<double> seconds =
        gpu_seconds({&one_shot, &pinned_copy, &two_steps}, spots, direction, setting.effort);
    const auto rate = [&](std::size_t i) { return static_cast<double>(bytes) / seconds[i] / 1e9; };
    Row row;
    row.table = "one_shot";
    row.labels = {{"family", work.family}, {"layout", work.name}, {"direction", name_of(direction)}};
    row.bytes = bytes;
    row.value = rate(0);
    row.bound = rate(1);
    row.peers = {{pinned_copy.name, rate(1)}, {two_steps.name, rate(2)}};
    print(row);
  }
}

}  // namespace

void print_one_shot(const Setting& setting) {
  const Memory host(std::size_t{65} << 20, Place::mapped_host);
  for (Size bytes = Size{64} << 10; bytes <= Size{64} << 20; bytes *= setting.quick ? 32 : 4) {
    for (const Size length : {8, 16, 100, 128, 4096}) {
      measure(setting, vector(bytes / length, length, length < 512 ? 512 : 2 * length), host);
    }
    measure(setting, indexed_block(bytes / 64, 64, 8), host);
    measure(setting, ragged(bytes / 18, 32), host);
    measure(setting, particles(bytes / 17), host);
  }
}

}  // namespace gapless::bench
