// Prints the tables of the GPU packing benchmark as JSON lines: `pack_gpu [--quick] [--peer NAME=PATH]... [TABLE...]`.
// pack.py runs it.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "arena.hpp"
#include "contestants/peer.hpp"
#include "gpu.hpp"
#include "tables/tables.hpp"

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
    {"many", print_many},
    {"one_shot", print_one_shot},
    {"contention", print_contention},
};

struct Options {
  bool quick = false;
  std::set<std::string> tables;  ///< all if empty

  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--quick") {
        quick = true;
      } else if (word == "--peer" && i + 1 < argc) {
        load_peer(argv[++i]);
      } else {
        tables.insert(word);
      }
    }
  }
  bool wants(const char* table) const { return tables.empty() || tables.count(table) == 1; }
};

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
  const Options options(argc, argv);
  Arena arena(print_machine(), std::size_t{1} << 30);
  const Effort effort = options.quick ? Effort{5, 2e-4} : Effort{11, 4e-4};
  const std::int64_t large = std::int64_t{1} << 30;
  arena.copy_seconds(large, effort);  // warms up
  const double bandwidth = 2 * static_cast<double>(large) / arena.copy_seconds(large, effort);
  const Setting setting{arena, bandwidth, effort, options.quick};
  for (const Table& table : tables) {
    if (options.wants(table.name)) table.print(setting);
  }
  return 0;
}
