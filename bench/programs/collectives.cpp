// Collectives on noncontiguous host memory, by the library and by gapless, in one process and in turn: the transposes
// of distributed FFTs (MPI_Alltoallw of subarrays, as mpi4py-fft makes them) and the halos of grids
// (MPI_Neighbor_alltoallw). One line of JSON for each case.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "native_mpi.hpp"

namespace gapless::bench {
namespace {

int rank, processes;

/// Medians of `samples` alternated samples, each of so many calls that the slowest process takes some milliseconds.
/// Every call's time is that of its slowest process.
struct Timings {
  double native, gapless;
};

double seconds_of(const std::function<void()>& call, int calls) {
  GAPLESS_BENCH_NATIVE(Barrier)(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call();
  double seconds = (MPI_Wtime() - start) / calls, slowest = 0;
  GAPLESS_BENCH_NATIVE(Allreduce)(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

Timings measure(const std::function<void()>& native, const std::function<void()>& ours) {
  constexpr int samples = 15;
  constexpr double sample_seconds = 0.008;
  seconds_of(ours, 3);
  const int calls = std::max(1, static_cast<int>(sample_seconds / seconds_of(native, 2)));
  std::vector<double> a, b;
  for (int i = 0; i < samples; ++i) {
    a.push_back(seconds_of(native, calls));
    b.push_back(seconds_of(ours, calls));
  }
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return {a[samples / 2], b[samples / 2]};
}

void tell(const std::string& name, double bytes, const Timings& timings) {
  if (rank != 0) return;
  std::printf("{\"case\": \"%s\", \"bytes\": %.0f, \"native_us\": %.2f, \"gapless_us\": %.2f}\n", name.c_str(), bytes,
              timings.native * 1e6, timings.gapless * 1e6);
  std::fflush(stdout);
}

MPI_Datatype subarray(const std::vector<int>& sizes, const std::vector<int>& subsizes, const std::vector<int>& starts,
                      MPI_Datatype element) {
  MPI_Datatype type;
  MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), subsizes.data(), starts.data(), MPI_ORDER_C,
                           element, &type);
  MPI_Type_commit(&type);
  return type;
}

std::vector<MPI_Datatype> slabs(const std::vector<int>& sizes, int axis, MPI_Datatype element) {
  std::vector<MPI_Datatype> types;
  for (int k = 0; k < processes; ++k) {
    std::vector<int> subsizes = sizes, starts(sizes.size(), 0);
    subsizes[static_cast<std::size_t>(axis)] /= processes;
    starts[static_cast<std::size_t>(axis)] = k * subsizes[static_cast<std::size_t>(axis)];
    types.push_back(subarray(sizes, subsizes, starts, element));
  }
  return types;
}

/// Alignment changes from `from` to `to`: the array is whole along `from` before and distributed along it after.
void transpose(const char* name, std::vector<int> shape, int from, int to, MPI_Datatype element, std::size_t bytes) {
  std::vector<int> before = shape, after = shape;
  before[static_cast<std::size_t>(to)] /= processes;
  after[static_cast<std::size_t>(from)] /= processes;
  const std::vector<MPI_Datatype> out = slabs(before, from, element), in = slabs(after, to, element);
  std::size_t size = bytes;
  for (const int n : before) size *= static_cast<std::size_t>(n);
  std::vector<char> sent(size, 1), received(size), wanted(size);
  for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<char>(i * 31 + i / 257 + static_cast<std::size_t>(rank));
  const std::vector<int> ones(out.size(), 1), zeros(out.size(), 0);
  const auto call = [&](decltype(&MPI_Alltoallw) function, std::vector<char>& into) {
    function(sent.data(), ones.data(), zeros.data(), out.data(), into.data(), ones.data(), zeros.data(), in.data(),
             MPI_COMM_WORLD);
  };
  const auto native = GAPLESS_BENCH_NATIVE(Alltoallw);
  call(native, wanted);
  for (int i = 0; i < 3; ++i) call(MPI_Alltoallw, received);
  if (wanted != received) std::printf("{\"case\": \"%s\", \"wrong\": true}\n", name);
  tell(name, static_cast<double>(size),
       measure([&] { call(native, received); }, [&] { call(MPI_Alltoallw, received); }));
  for (auto types : {out, in}) {
    for (MPI_Datatype type : types) MPI_Type_free(&type);
  }
}

/// The faces of an n^3 block of doubles, on a torus.
void halo(const char* name, int n, int width) {
  int dimensions[3] = {0, 0, 0};
  const int periodic[3] = {1, 1, 1};
  MPI_Dims_create(processes, 3, dimensions);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 3, dimensions, periodic, 0, &grid);
  const int m = n + 2 * width;
  std::vector<MPI_Datatype> out, in;
  for (int axis = 0; axis < 3; ++axis) {
    for (const bool high : {false, true}) {
      std::vector<int> sizes(3, m), subsizes(3, n), inner(3, width), outer(3, width);
      const auto a = static_cast<std::size_t>(axis);
      subsizes[a] = width;
      inner[a] = high ? n : width;
      outer[a] = high ? n + width : 0;
      out.push_back(subarray(sizes, subsizes, inner, MPI_DOUBLE));
      in.push_back(subarray(sizes, subsizes, outer, MPI_DOUBLE));
    }
  }
  const std::size_t points = static_cast<std::size_t>(m) * static_cast<std::size_t>(m) * static_cast<std::size_t>(m);
  std::vector<double> field(points, rank), wanted(points), received(points);
  for (std::size_t i = 0; i < points; ++i) field[i] = static_cast<double>(i) + rank;
  const std::vector<int> ones(6, 1);
  const std::vector<MPI_Aint> zeros(6, 0);
  const auto call = [&](decltype(&MPI_Neighbor_alltoallw) function, std::vector<double>& into) {
    function(field.data(), ones.data(), zeros.data(), out.data(), into.data(), ones.data(), zeros.data(), in.data(),
             grid);
  };
  const auto native = GAPLESS_BENCH_NATIVE(Neighbor_alltoallw);
  call(native, wanted);
  for (int i = 0; i < 3; ++i) call(MPI_Neighbor_alltoallw, received);
  if (wanted != received) std::printf("{\"case\": \"%s\", \"wrong\": true}\n", name);
  tell(name, 6.0 * n * n * width * sizeof(double),
       measure([&] { call(native, received); }, [&] { call(MPI_Neighbor_alltoallw, received); }));
  for (auto types : {out, in}) {
    for (MPI_Datatype type : types) MPI_Type_free(&type);
  }
  MPI_Comm_free(&grid);
}

void run_all() {
  if (!is_interposed()) std::printf("{\"case\": \"gapless\", \"wrong\": true}\n");
  const std::size_t d = sizeof(double), z = 2 * d;
  transpose("slab 32^3 doubles, axes 1 to 0", {32, 32, 32}, 1, 0, MPI_DOUBLE, d);
  transpose("slab 64^3 doubles, axes 1 to 0", {64, 64, 64}, 1, 0, MPI_DOUBLE, d);
  transpose("slab 128^3 doubles, axes 1 to 0", {128, 128, 128}, 1, 0, MPI_DOUBLE, d);
  transpose("slab 128^3 doubles, axes 2 to 0", {128, 128, 128}, 2, 0, MPI_DOUBLE, d);
  transpose("slab 128x128x66 complex, axes 1 to 0", {128, 128, 66}, 1, 0, MPI_C_DOUBLE_COMPLEX, z);
  transpose("pencil 64x64x128 doubles, axes 2 to 1", {64, 64, 128}, 2, 1, MPI_DOUBLE, d);
  transpose("pencil 32^3 complex, axes 2 to 1", {32, 32, 32}, 2, 1, MPI_C_DOUBLE_COMPLEX, z);
  transpose("plane 512x512 doubles, axes 1 to 0", {512, 512}, 1, 0, MPI_DOUBLE, d);
  halo("halo 16^3 doubles, 1 wide", 16, 1);
  halo("halo 64^3 doubles, 1 wide", 64, 1);
  halo("halo 128^3 doubles, 2 wide", 128, 2);
}

}  // namespace
}  // namespace gapless::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &gapless::bench::rank);
  MPI_Comm_size(MPI_COMM_WORLD, &gapless::bench::processes);
  gapless::bench::run_all();
  MPI_Finalize();
}
