// Prints the tables of the GPU packing benchmark as JSON lines: `pack_gpu [--quick] [TABLE...]`. pack.py runs it.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "arena.hpp"
#include "gpu.hpp"
#include "tables.hpp"

namespace {

using namespace gapless::bench;

struct Table {
  const char* name;
  void (*print)(const Setting&);
};

constexpr Table tables[] = {
    {"ceilings", print_ceilings},
    {"large", print_large},
    {"block_lengths", print_block_lengths},
    {"types", print_types},
    {"types_on_gpu", print_types_on_gpu},
    {"blocks_1024", print_blocks_of_1024},
    {"faces", print_faces},
    {"stages", print_stages},
    {"constructions", print_constructions},
    {"latency", print_latency},
    {"halo", print_halo},
    {"one_shot", print_one_shot},
    {"contention", print_contention},
};

bool has(int argc, char** argv, const char* word) {
  return std::any_of(argv + 1, argv + argc, [&](const char* argument) { return std::strcmp(argument, word) == 0; });
}

/// Prints what machine this is; the arena's size fits it.
std::size_t print_machine() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "looking for a GPU");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  std::printf("{\"machine\": \"%s\", \"multiprocessors\": %d, \"cache_bytes\": %d, \"cuda_driver\": %d}\n",
              properties.name, properties.multiProcessorCount, properties.l2CacheSize, driver);
  constexpr std::size_t gibibyte = std::size_t{1} << 30;
  return std::min(4 * gibibyte + gibibyte / 8, properties.totalGlobalMem / 4);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = has(argc, argv, "--quick");
  const bool all = argc == (quick ? 2 : 1);
  Arena arena(print_machine(), std::size_t{1} << 30);
  const Effort effort = quick ? Effort{5, 2e-4} : Effort{11, 4e-4};
  const std::int64_t large = std::int64_t{1} << 30;
  arena.copy_seconds(large, effort);  // warms up
  const double bandwidth = 2 * static_cast<double>(large) / arena.copy_seconds(large, effort);
  const Setting setting{arena, bandwidth, effort, quick};
  for (const Table& table : tables) {
    if (all || has(argc, argv, table.name)) table.print(setting);
  }
  return 0;
}
