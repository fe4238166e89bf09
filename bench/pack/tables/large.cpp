// Is packing as fast as memory allows? Every class of layouts from 1 MiB on, in memory that no cache holds.
#include <cmath>

#include "tables/tables.hpp"

namespace gapless::bench {
namespace {

using Size = std::int64_t;

/// The cube of doubles inside a larger one, of about that many bytes: 3-D with rows, none of them full.
Workload cube_of(Size bytes) {
  const auto edge = static_cast<Size>(std::cbrt(static_cast<double>(bytes) / 8));
  return subarray("3-D", {edge + edge / 2, edge + edge / 2, edge + edge / 2}, {edge, edge, edge}, {1, 1, 2}, 8);
}

Workload hypercube_of(Size bytes) {
  const auto edge = static_cast<Size>(std::ceil(std::pow(static_cast<double>(bytes) / 8, 0.25)));
  const Size size = std::max<Size>(64, edge + 4);
  return subarray("4-D", {size, size, size, size}, {edge, edge, edge, edge}, {0, 1, 2, 2}, 8);
}

/// One element deep in the last dimension: a Y-Z face.
Workload face_of(Size bytes) {
  const auto edge = static_cast<Size>(std::sqrt(static_cast<double>(bytes) / 8));
  return subarray("3-D", {edge, edge, 64}, {edge, edge, 1}, {0, 0, 0}, 8);
}

std::vector<Workload> classes(Size bytes) {
  const auto edge = static_cast<Size>(std::sqrt(static_cast<double>(bytes) / 8)) / 32 * 32;
  std::vector<Workload> works;
  works.push_back(contiguous(bytes));
  for (const Size length : {8, 32, 128}) works.push_back(vector(bytes / length, length, 512));
  works.push_back(vector(bytes / 4096, 4096, 8192));
  works.push_back(cube_of(bytes));
  works.push_back(face_of(bytes));
  works.push_back(hypercube_of(bytes));
  works.push_back(transposed(edge, bytes / 8 / edge, 8));
  works.push_back(transposed(edge, bytes / 4 / edge, 4));
  // Arrays of structs, packed one field after the other.
  works.push_back(transposed(bytes / 12, 3, 4));
  works.push_back(transposed(bytes / 40, 5, 8));
  for (const Size length : {8, 128}) works.push_back(indexed_block(bytes / length, length, 8));
  works.push_back(ragged(bytes / 18, 32));
  works.push_back(ragged(bytes / 258, 512));
  works.push_back(particles(bytes / 17));
  return works;
}

}  // namespace

void print_large(const Setting& setting) {
  for (const Size mebibytes : setting.quick ? std::vector<Size>{4, 64} : std::vector<Size>{1, 4, 16, 64}) {
    for (const Workload& work : classes(mebibytes << 20)) {
      if (!setting.arena.holds(work)) continue;
      measure_directions(setting, "large", work, setting.arena.spots(work), false);
    }
  }
}

void print_block_lengths(const Setting& setting) {
  for (const Size length : {4, 8, 12, 16, 20, 24, 32, 36, 64, 100, 128, 256, 512, 1000, 1024}) {
    const Size stride = length < 512 ? 512 : 2048;
    const Workload work = vector((length < 16 ? Size{32} << 20 : Size{64} << 20) / length, length, stride);
    if (setting.arena.holds(work)) {
      measure_directions(setting, "block_lengths", work, setting.arena.spots(work), true);
    }
  }
}

}  // namespace gapless::bench
