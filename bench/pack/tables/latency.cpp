// How long does a small pack take, from the call to the data being there? Against starting a kernel that does nothing
// and learning of its end.
#include <cstdlib>
#include <string>
#include <string_view>

#include "blocking.hpp"
#include "contestants/hand.hpp"
#include "contestants/vendor.hpp"
#include "gpu.hpp"
#include "tables/tables.hpp"
#include "wall.hpp"

namespace gapless::bench {
namespace {

using Size = std::int64_t;

std::string resident() {
  const char* const wanted = std::getenv("GAPLESS_RESIDENT");
  if (wanted == nullptr) return "no";
  return std::string_view(wanted) == "1" ? "yes" : wanted;
}

void measure(const Setting& setting, Size bytes, Size length, gapless_direction direction) {
  const Size stride = 8 * length;
  const Workload work = vector(bytes / length, length, stride);
  const std::vector<Spot> spots = setting.arena.one_spot();
  const Contestant blocking = blocking_calls(work);
  const Contestant mine = gapless_calls(work);
  const std::vector<Contestant> kernels = hand_written(work);
  const Contestant& kernel = kernels[fastest(kernels, spots, direction)];
  const std::vector<Contestant> calls = vendor_calls(work);
  const Contestant& copy_2d = calls.front();
  setting.arena.verify(work, {&blocking, &mine, &kernel, &copy_2d}, spots);

  static Launches launches;
  const Stream stream;
  const auto waited = [&](const Contestant& contestant) {
    return [&] {
      contestant.issue(spots[0], direction, stream);
      stream.wait();
    };
  };
  const std::vector<Contestant> others = right_peers(setting, work, spots);
  std::vector<WaitedCall> waiting{
      {"gapless", [&] { blocking.issue(spots[0], direction, nullptr); }},
      {"empty kernel, completion polled", [&] { launches.launch_and_poll(); }},
      {"empty kernel, synchronised", [&] { launches.launch_and_synchronise(); }},
      {"C API, synchronised", waited(mine)},
      {"hand-written kernel, synchronised", waited(kernel)},
      {"cudaMemcpy2DAsync, synchronised", waited(copy_2d)},
  };
  for (const Contestant& peer : others) waiting.push_back({peer.name, waited(peer)});
  const std::vector<double> seconds = wall_seconds(waiting, setting.quick ? 101 : 301);
  Row row;
  row.table = "latency";
  row.labels = {{"layout", work.name}, {"direction", name_of(direction)}, {"resident", resident()}};
  row.bytes = bytes;
  set_times(row, waiting, seconds);
  row.note = kernel.name;
  print(row);
}

}  // namespace

void print_latency(const Setting& setting) {
  for (Size bytes = 64; bytes <= Size{1} << 20; bytes *= 4) {
    for (const gapless_direction direction : {GAPLESS_PACK, GAPLESS_UNPACK}) measure(setting, bytes, 8, direction);
  }
  measure(setting, Size{64} << 10, 128, GAPLESS_PACK);
}

}  // namespace gapless::bench
