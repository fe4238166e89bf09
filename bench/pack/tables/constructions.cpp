// Is one object packed as fast however its type was constructed? The 2-D and 3-D objects of Pearson et al., 2021.
#include <algorithm>
#include <cstdio>

#include "contestants/hand.hpp"
#include "fail.hpp"
#include "tables/tables.hpp"

namespace gapless::bench {
namespace {

using Size = std::int64_t;

struct Construction {
  const char* name;
  std::string text;
};

std::string text(const char* format, Size a = 0, Size b = 0, Size c = 0, Size d = 0, Size e = 0) {
  char line[256];
  std::snprintf(line, sizeof line, format, static_cast<long long>(a), static_cast<long long>(b),
                static_cast<long long>(c), static_cast<long long>(d), static_cast<long long>(e));
  return line;
}

/// Seconds a call of each, the best of several looks. What is compared launches the same kernel with the same numbers,
/// but of two graphs of the same launches one can be a quarter slower, every time, until it is made anew.
std::vector<double> best_seconds(const Setting& setting, std::vector<const Contestant*> contestants,
                                 const std::vector<Spot>& spots, gapless_direction direction) {
  constexpr int looks = 4;
  const Effort effort{setting.effort.samples, setting.effort.sample_seconds / 2};
  std::vector<double> best(contestants.size(), 1e9);
  for (std::size_t look = 0; look < looks; ++look) {
    const std::vector<double> seconds = gpu_seconds(contestants, spots, direction, effort);
    for (std::size_t i = 0; i < best.size(); ++i) {
      double& mine = best[(i + look) % best.size()];
      mine = std::min(mine, seconds[i]);
    }
    std::rotate(contestants.begin(), contestants.begin() + 1, contestants.end());
  }
  return best;
}

/// How the types compare before anything is launched.
const char* relation(const std::vector<Workload>& works) {
  for (const Workload& work : works) {
    int equal = 0;
    check(gapless_type_equal(works[0].type.get(), work.type.get(), &equal), "comparing types");
    if (equal == 0) return "different canonical forms";
  }
  return "one canonical form";
}

/// Measures all constructions of one object against each other, and prints a row with all of them.
void compare(const Setting& setting, const char* family, const std::string& object, const Blocks& blocks, Size count,
             const std::vector<Construction>& constructions) {
  std::vector<Workload> works;
  for (const Construction& construction : constructions) {
    works.push_back({family, object, parse_type(construction.text), count, blocks, Contiguous{}, {}});
  }
  if (!setting.arena.holds(works[0])) return;
  std::vector<Contestant> contestants;
  for (const Workload& work : works) contestants.push_back(gapless_calls(work));
  std::vector<const Contestant*> all;
  for (const Contestant& contestant : contestants) all.push_back(&contestant);
  const std::vector<Spot> spots = setting.arena.spots(works[0]);
  setting.arena.verify(works[0], all, spots);
  const auto bytes = static_cast<double>(works[0].packed_bytes());
  const double bound = static_cast<double>(works[0].traffic()) / setting.copy_bandwidth;
  for (const gapless_direction direction : {GAPLESS_PACK, GAPLESS_UNPACK}) {
    const std::vector<double> seconds = best_seconds(setting, all, spots, direction);
    const auto rate = [&](std::size_t i) { return bytes / seconds[i] / 1e9; };
    Row row;
    row.table = "constructions";
    row.labels = {{"family", family},
                  {"layout", object},
                  {"count", std::to_string(count)},
                  {"construction", constructions[0].name},
                  {"direction", name_of(direction)}};
    row.bytes = works[0].packed_bytes();
    row.value = rate(0);
    row.bound = bytes / bound / 1e9;
    for (std::size_t i = 1; i < seconds.size(); ++i) row.peers.emplace_back(constructions[i].name, rate(i));
    row.note = relation(works);
    print(row);
  }
}

/// Blocks every 512 bytes, as vector, hvector and subarray of the same extent.
void compare_2d(const Setting& setting, Size bytes, Size length, Size count) {
  const Size rows = bytes / length, pitch = 512;
  const Blocks blocks = vector(rows * count, length, pitch).blocks;
  compare(setting, "2-D", text("%lld blocks of %lld B every 512 B", rows, length), blocks, count,
          {{"vector", text("resized(vector(%lld, %lld, %lld, byte), 0, %lld)", rows, length, pitch, rows * pitch)},
           {"hvector", text("resized(hvector(%lld, 1, %lld, contiguous(%lld, byte)), 0, %lld)", rows, pitch, length,
                            rows * pitch)},
           {"subarray", text("subarray([%lld,%lld], [%lld,%lld], [0,0], c, byte)", rows, pitch, rows, length)}});
}

/// x bytes of y rows of z planes of a cube of 1024^3 bytes.
void compare_3d(const Setting& setting, Size x, Size y, Size z) {
  const Size edge = 1024, plane = edge * edge;
  const Blocks blocks = subarray("3-D", {edge, edge, edge}, {z, y, x}, {0, 0, 0}, 1).blocks;
  const std::string rows = text("vector(%lld, %lld, %lld, byte)", y, x, edge);
  const std::string hrows = text("hvector(%lld, 1, %lld, contiguous(%lld, byte))", y, edge, x);
  const std::string face = text("subarray([%lld,%lld], [%lld,%lld], [0,0], c, byte)", edge, edge, y, x);
  const std::string planes = text("hvector(%lld, 1, %lld, ", z, plane);
  compare(setting, "3-D", text("%lldx%lldx%lld B of 1024^3 B", x, y, z), blocks, 1,
          {{"hvector of vector", planes + rows + ")"},
           {"hvector of hvector", planes + hrows + ")"},
           {"hvector of subarray", planes + face + ")"},
           {"subarray", text("subarray([1024,1024,1024], [%lld,%lld,%lld], [0,0,0], c, byte)", z, y, x)},
           {"vector of subarray", text("vector(%lld, 1, 1, ", z) + face + ")"}});
}

}  // namespace

void print_constructions(const Setting& setting) {
  for (const Size bytes : {Size{1} << 10, Size{1} << 20, Size{4} << 20}) {
    for (Size length = 1; length <= 512; length *= setting.quick ? 8 : 2) {
      for (const Size count : {1, 2}) {
        compare_2d(setting, bytes, length, count);
      }
    }
  }
  const Size boxes[][3] = {{16, 16, 16},   {4, 128, 128},  {12, 512, 512}, {100, 100, 100}, {100, 13, 47},
                           {128, 128, 64}, {512, 64, 128}, {1000, 64, 64}, {256, 512, 512}, {1, 512, 1024}};
  for (const auto& [x, y, z] : boxes) compare_3d(setting, x, y, z);
}

}  // namespace gapless::bench
