// The tables of the benchmark. Each prints its rows as JSON lines while it runs; pack.py judges them.
#pragma once

#include <string>
#include <vector>

#include "arena.hpp"
#include "contestants/contestant.hpp"
#include "wall.hpp"
#include "workload.hpp"

namespace gapless::bench {

struct Setting {
  Arena& arena;
  double copy_bandwidth;  ///< bytes read and written a second by a large copy
  Effort effort;
  bool quick;
};

/// One row. `bound` is what the traffic allows at the speed of a large copy, 0 where that says nothing.
struct Row {
  std::string table;
  std::vector<std::pair<std::string, std::string>> labels;
  std::int64_t bytes = 0;
  double value = 0;
  const char* unit = "GB/s";
  double bound = 0;
  std::vector<std::pair<std::string, double>> peers;
  std::string note;  ///< such as which hand-written kernel was the best one
};
void print(const Row& row);
const char* name_of(gapless_direction direction);
/// The first call's time is the row's value, the others are its peers.
void set_times(Row& row, const std::vector<WaitedCall>& calls, const std::vector<double>& seconds);

/// gapless through its C API.
Contestant gapless_calls(const Workload& work);

/// The loaded peers that do the work right; the others are named on stderr.
std::vector<Contestant> right_peers(const Setting& setting, const Workload& work, const std::vector<Spot>& spots);

/// Packs and unpacks the work with gapless, the best hand-written kernel and the vendor's calls, after verifying all.
void measure_directions(const Setting& setting, const std::string& table, const Workload& work,
                        const std::vector<Spot>& spots, bool with_vendor);

/// What the machine can do at best.
void print_ceilings(const Setting& setting);
/// Every class of layouts at 1, 4, 16 and 64 MiB.
void print_large(const Setting& setting);
/// Vectors of 4- to 1024-byte blocks, powers of two and others.
void print_block_lengths(const Setting& setting);
/// The types of Jenkins et al., 2012 and 2014, from 64 B to 4 MiB, until the packed bytes are there.
void print_types(const Setting& setting);
/// The same types, time on the GPU alone.
void print_types_on_gpu(const Setting& setting);
/// 1024 blocks of 8 to 256 B.
void print_blocks_of_1024(const Setting& setting);
/// The faces of cubes of 64 to 512 doubles.
void print_faces(const Setting& setting);
/// The papers' algorithm, taken apart.
void print_stages(const Setting& setting);
/// One object, differently constructed.
void print_constructions(const Setting& setting);
/// Small messages.
void print_latency(const Setting& setting);
/// The 26 regions of a 3-D halo exchange.
void print_halo(const Setting& setting);
/// Hundreds and thousands of small jobs in one call.
void print_many(const Setting& setting);
/// To and from host memory that the GPU addresses.
void print_one_shot(const Setting& setting);
/// Beside a program that keeps the GPU or the bus busy.
void print_contention(const Setting& setting);

}  // namespace gapless::bench
