// What this machine can do at best, measured in the run that everything else is compared in.
#include "contestants/hand.hpp"
#include "gpu.hpp"
#include "tables/tables.hpp"
#include "wall.hpp"

namespace gapless::bench {
namespace {

void print_ceiling(const char* what, std::int64_t bytes, double value, const char* unit) {
  Row row;
  row.table = "ceilings";
  row.labels = {{"what", what}};
  row.bytes = bytes;
  row.value = value;
  row.unit = unit;
  print(row);
}

}  // namespace

void print_ceilings(const Setting& setting) {
  print_ceiling("copy on the GPU, read and write", std::int64_t{1} << 30, setting.copy_bandwidth / 1e9, "GB/s");

  constexpr std::int64_t bytes = std::int64_t{64} << 20;
  const Memory device(bytes), host(bytes, Place::mapped_host);
  const std::vector<Spot> spots{{device.data(), host.data()}};
  const Contestant pinned = copies(bytes).back();
  const auto rate = [&](gapless_direction direction) {
    return static_cast<double>(bytes) / gpu_seconds({&pinned}, spots, direction, setting.effort)[0] / 1e9;
  };
  print_ceiling("copy from the GPU to pinned memory", bytes, rate(GAPLESS_PACK), "GB/s");
  print_ceiling("copy from pinned memory to the GPU", bytes, rate(GAPLESS_UNPACK), "GB/s");

  Launches launches;
  const std::vector<double> seconds =
      wall_seconds({{"", [&] { launches.launch_and_poll(); }}, {"", [&] { launches.launch_and_synchronise(); }}},
                   setting.quick ? 101 : 501);
  print_ceiling("launching an empty kernel, its completion polled", 0, seconds[0] * 1e6, "us");
  print_ceiling("launching an empty kernel and synchronising", 0, seconds[1] * 1e6, "us");
}

}  // namespace gapless::bench
