// Does gapless make datatypes dearer? Creates, commits and frees 24 boxes in 5 constructions each (Pearson et al.,
// 2021, section 6.1), through the names that the program uses and through the library's own symbols in turn, and times
// the first use of a type against later uses of it. Run it with gapless preloaded. Prints one JSON line per
// construction.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "measure.hpp"
#include "native_mpi.hpp"

namespace {

// A box of x bytes by y rows by z planes inside an array of 256 bytes by 256 rows.
struct Box {
  int x, y, z;
};
constexpr int row = 256, plane = 256 * 256;

std::vector<Box> boxes() {
  std::vector<Box> result;
  for (int x : {1, 8, 64, 256}) {
    for (int y : {1, 16, 256}) {
      for (int z : {2, 32}) result.push_back({x, y, z});
    }
  }
  return result;
}

/// What makes and frees datatypes, by either way there is.
struct Functions {
  decltype(&MPI_Type_contiguous) contiguous;
  decltype(&MPI_Type_vector) vector;
  decltype(&MPI_Type_create_hvector) hvector;
  decltype(&MPI_Type_create_subarray) subarray;
  decltype(&MPI_Type_commit) commit;
  decltype(&MPI_Type_free) free;
};

constexpr Functions program{&MPI_Type_contiguous,      &MPI_Type_vector, &MPI_Type_create_hvector,
                            &MPI_Type_create_subarray, &MPI_Type_commit, &MPI_Type_free};

Functions native_functions() {
  return {GAPLESS_BENCH_NATIVE(Type_contiguous),     GAPLESS_BENCH_NATIVE(Type_vector),
          GAPLESS_BENCH_NATIVE(Type_create_hvector), GAPLESS_BENCH_NATIVE(Type_create_subarray),
          GAPLESS_BENCH_NATIVE(Type_commit),         GAPLESS_BENCH_NATIVE(Type_free)};
}

MPI_Datatype subarray(const Functions& mpi, const Box& box) {
  const int sizes[] = {box.z, plane / row, row}, subsizes[] = {box.z, box.y, box.x}, starts[] = {0, 0, 0};
  MPI_Datatype type;
  mpi.subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_BYTE, &type);
  return type;
}

MPI_Datatype stacked(const Functions& mpi, MPI_Datatype rows, const Box& box) {
  MPI_Datatype type;
  mpi.hvector(box.z, 1, plane, rows, &type);
  mpi.free(&rows);
  return type;
}

MPI_Datatype vector_hvector(const Functions& mpi, const Box& box) {
  MPI_Datatype rows;
  mpi.vector(box.y, box.x, row, MPI_BYTE, &rows);
  return stacked(mpi, rows, box);
}

MPI_Datatype hvector_hvector(const Functions& mpi, const Box& box) {
  MPI_Datatype rows;
  mpi.hvector(box.y, box.x, row, MPI_BYTE, &rows);
  return stacked(mpi, rows, box);
}

MPI_Datatype contiguous_hvector_hvector(const Functions& mpi, const Box& box) {
  MPI_Datatype line, rows;
  mpi.contiguous(box.x, MPI_BYTE, &line);
  mpi.hvector(box.y, 1, row, line, &rows);
  mpi.free(&line);
  return stacked(mpi, rows, box);
}

MPI_Datatype subarray_hvector(const Functions& mpi, const Box& box) {
  const int sizes[] = {plane / row, row}, subsizes[] = {box.y, box.x}, starts[] = {0, 0};
  MPI_Datatype rows;
  mpi.subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_BYTE, &rows);
  return stacked(mpi, rows, box);
}

struct Construction {
  const char* name;
  MPI_Datatype (*make)(const Functions&, const Box&);
};
constexpr Construction constructions[] = {{"subarray", subarray},
                                          {"vector, hvector", vector_hvector},
                                          {"hvector, hvector", hvector_hvector},
                                          {"contiguous, hvector, hvector", contiguous_hvector_hvector},
                                          {"subarray, hvector", subarray_hvector}};

double now() { return MPI_Wtime(); }

// First packing of nothing but one box, less a later packing of the same, averaged over fresh types.
double first_use_seconds(const Construction& construction, std::vector<char>& memory, std::vector<char>& packed) {
  std::vector<double> samples;
  for (int repeat = 0; repeat < 400; ++repeat) {
    MPI_Datatype type = construction.make(program, {8, 16, 2});
    MPI_Type_commit(&type);
    double times[3];
    for (double& time : times) {
      int position = 0;
      const double start = now();
      MPI_Pack(memory.data(), 1, type, packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_WORLD);
      time = now() - start;
    }
    samples.push_back(times[0] - times[2]);
    MPI_Type_free(&type);
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::vector<char> memory(64 * plane), packed(8 << 20);
  const std::vector<Box> all = boxes();
  const auto create_all = [&](const Construction& construction, const Functions& mpi) {
    for (const Box& box : all) {
      MPI_Datatype type = construction.make(mpi, box);
      mpi.commit(&type);
      mpi.free(&type);
    }
  };
  const Functions native = native_functions();
  // Now and then a process makes datatypes at half the speed for its first tenth of a second.
  for (const double start = now(); now() - start < 0.5;) create_all(constructions[0], program);
  for (const Construction& construction : constructions) {
    const auto timings = gapless::bench::measure({{"program", [&] { create_all(construction, program); }},
                                                  {"native", [&] { create_all(construction, native); }}},
                                                 101, 5e-4);
    const double scale = 1e9 / static_cast<double>(all.size());
    std::printf(
        "{\"construction\": \"%s\", \"interposed\": %s, \"create_commit_free_ns\": %.1f, \"native_ns\": %.1f, "
        "\"first_use_ns\": %.0f}\n",
        construction.name, gapless::bench::is_interposed() ? "true" : "false", timings[0].median * scale,
        timings[1].median * scale, first_use_seconds(construction, memory, packed) * 1e9);
  }
  MPI_Finalize();
}
