// What does a datatype cost that lives shortly, or is huge? Each is made, used by MPI_Pack a few times and freed,
// through the names that the program uses and through the library's own symbols in turn. Run it with gapless preloaded.
// Prints one JSON line per type and number of uses.
//
//   datatypes [--only TEXT] [--kind small|huge] [--uses N] [--analysis yes]
//
// Small types are timed over their whole life, huge ones from the first use to the end of MPI_Type_free: the library
// takes longer to make them than to use them. Packed bytes are compared with a list of this program's own. Nothing here
// waits for another process, so what is measured is the thread's own time.
//
// With --analysis and GAPLESS_SCHEME=packed, by which gapless analyses at the first use: what that use takes more than
// the next one, and how much memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "measure.hpp"
#include "native_mpi.hpp"

namespace {

/// What makes, uses and frees datatypes, by either way there is.
struct Functions {
  decltype(&MPI_Type_vector) vector;
  decltype(&MPI_Type_create_subarray) subarray;
  decltype(&MPI_Type_create_indexed_block) indexed_block;
  decltype(&MPI_Type_indexed) indexed;
  decltype(&MPI_Type_create_struct) structure;
  decltype(&MPI_Type_commit) commit;
  decltype(&MPI_Pack) pack;
  decltype(&MPI_Type_free) free;
};

constexpr Functions program{&MPI_Type_vector,
                            &MPI_Type_create_subarray,
                            &MPI_Type_create_indexed_block,
                            &MPI_Type_indexed,
                            &MPI_Type_create_struct,
                            &MPI_Type_commit,
                            &MPI_Pack,
                            &MPI_Type_free};

Functions native_functions() {
  return {GAPLESS_BENCH_NATIVE(Type_vector),
          GAPLESS_BENCH_NATIVE(Type_create_subarray),
          GAPLESS_BENCH_NATIVE(Type_create_indexed_block),
          GAPLESS_BENCH_NATIVE(Type_indexed),
          GAPLESS_BENCH_NATIVE(Type_create_struct),
          GAPLESS_BENCH_NATIVE(Type_commit),
          GAPLESS_BENCH_NATIVE(Pack),
          GAPLESS_BENCH_NATIVE(Type_free)};
}

struct Run {
  std::size_t offset, length;
};

/// One type: how it is made, and the bytes it names, in order.
struct Subject {
  std::string name{};
  std::size_t blocks = 0;
  bool is_huge = false;
  std::function<MPI_Datatype(const Functions&)> make{};
  std::vector<Run> runs{};
  std::size_t list_bytes = 0;  ///< of the arrays that the constructor is given

  std::size_t size() const {
    std::size_t bytes = 0;
    for (const Run& run : runs) bytes += run.length;
    return bytes;
  }
  std::size_t extent() const {
    std::size_t end = 0;
    for (const Run& run : runs) end = std::max(end, run.offset + run.length);
    return end;
  }
};

Subject vector_of_100() {
  Subject subject{.blocks = 100};
  subject.make = [](const Functions& mpi) {
    MPI_Datatype type;
    mpi.vector(100, 1, 2, MPI_DOUBLE, &type);
    return type;
  };
  for (std::size_t i = 0; i < 100; ++i) subject.runs.push_back({16 * i, 8});
  return subject;
}

Subject subarray_of_three_dimensions() {
  Subject subject{.blocks = 256};
  subject.make = [](const Functions& mpi) {
    const int sizes[] = {64, 64, 64}, subsizes[] = {16, 16, 16}, starts[] = {1, 2, 3};
    MPI_Datatype type;
    mpi.subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_FLOAT, &type);
    return type;
  };
  for (std::size_t z = 1; z < 17; ++z) {
    for (std::size_t y = 2; y < 18; ++y) subject.runs.push_back({4 * ((z * 64 + y) * 64 + 3), 64});
  }
  return subject;
}

Subject struct_of_four() {
  Subject subject{.blocks = 3, .runs = {{0, 8}, {16, 8}, {32, 3}}};
  subject.make = [](const Functions& mpi) {
    const int lengths[] = {1, 1, 1, 3};
    const MPI_Aint displacements[] = {0, 16, 20, 32};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_INT, MPI_CHAR};
    MPI_Datatype type;
    mpi.structure(4, lengths, displacements, types, &type);
    return type;
  };
  return subject;
}

Subject irregular_indexed_block() {
  Subject subject{.blocks = 1000};
  auto displacements = std::make_shared<std::vector<int>>();
  std::mt19937 random(1);
  int next = 0;
  for (int i = 0; i < 1000; ++i) {
    displacements->push_back(next);
    subject.runs.push_back({4 * static_cast<std::size_t>(next), 4});
    next += 2 + static_cast<int>(random() % 7);
  }
  subject.make = [displacements](const Functions& mpi) {
    MPI_Datatype type;
    mpi.indexed_block(1000, 1, displacements->data(), MPI_INT, &type);
    return type;
  };
  return subject;
}

Subject indexed(std::size_t blocks) {
  Subject subject{.blocks = blocks, .is_huge = true, .list_bytes = 8 * blocks};
  auto lengths = std::make_shared<std::vector<int>>();
  auto displacements = std::make_shared<std::vector<int>>();
  std::mt19937 random(2);
  int next = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const int length = 1 + static_cast<int>(random() % 4);
    lengths->push_back(length);
    displacements->push_back(next);
    subject.runs.push_back({4 * static_cast<std::size_t>(next), 4 * static_cast<std::size_t>(length)});
    next += length + 1 + static_cast<int>(random() % 4);
  }
  subject.make = [lengths, displacements](const Functions& mpi) {
    MPI_Datatype type;
    mpi.indexed(static_cast<int>(lengths->size()), lengths->data(), displacements->data(), MPI_INT, &type);
    return type;
  };
  return subject;
}

Subject struct_of_a_million() {
  constexpr std::size_t fields = 1000000;
  Subject subject{.blocks = fields, .is_huge = true, .list_bytes = fields * (4 + 8 + sizeof(MPI_Datatype))};
  auto displacements = std::make_shared<std::vector<MPI_Aint>>();
  auto types = std::make_shared<std::vector<MPI_Datatype>>();
  std::mt19937 random(3);
  std::size_t next = 0;
  for (std::size_t i = 0; i < fields; ++i) {
    const std::size_t kind = random() % 3, size = kind == 0 ? 8 : kind == 1 ? 4 : 1;
    types->push_back(kind == 0 ? MPI_DOUBLE : kind == 1 ? MPI_INT : MPI_CHAR);
    displacements->push_back(static_cast<MPI_Aint>(next));
    subject.runs.push_back({next, size});
    next += 16 + 8 * (random() % 3);
  }
  auto lengths = std::make_shared<std::vector<int>>(fields, 1);
  subject.make = [lengths, displacements, types](const Functions& mpi) {
    MPI_Datatype type;
    mpi.structure(static_cast<int>(lengths->size()), lengths->data(), displacements->data(), types->data(), &type);
    return type;
  };
  return subject;
}

/// Made only if it is measured: a huge one takes a second.
struct SubjectMaker {
  std::string name;
  bool is_huge;
  std::function<Subject()> make;
};

std::vector<SubjectMaker> subjects() {
  return {{"vector of 100", false, vector_of_100},
          {"3-D subarray 16^3 of 64^3", false, subarray_of_three_dimensions},
          {"struct of 4", false, struct_of_four},
          {"irregular indexed_block of 1000", false, irregular_indexed_block},
          {"indexed, 10^6 blocks", true, [] { return indexed(1000000); }},
          {"indexed, 10^7 blocks", true, [] { return indexed(10000000); }},
          {"struct of 10^6 fields", true, struct_of_a_million}};
}

/// The memory that a type is packed from, and what it is packed to.
struct Buffers {
  explicit Buffers(const Subject& subject) : memory(subject.extent()), packed(subject.size()) {
    std::mt19937_64 random(4);
    for (char& byte : memory) byte = static_cast<char>(random());
    expected.reserve(packed.size());
    for (const Run& run : subject.runs) {
      expected.insert(expected.end(), memory.begin() + static_cast<std::ptrdiff_t>(run.offset),
                      memory.begin() + static_cast<std::ptrdiff_t>(run.offset + run.length));
    }
  }
  std::vector<char> memory, packed, expected;
};

void use(const Functions& mpi, MPI_Datatype type, int uses, Buffers& buffers) {
  for (int i = 0; i < uses; ++i) {
    int position = 0;
    mpi.pack(buffers.memory.data(), 1, type, buffers.packed.data(), static_cast<int>(buffers.packed.size()), &position,
             MPI_COMM_WORLD);
  }
}

MPI_Datatype made(const Subject& subject, const Functions& mpi) {
  MPI_Datatype type = subject.make(mpi);
  mpi.commit(&type);
  return type;
}

/// After every single use: the way may change between two.
void verify(const Subject& subject, const Functions& mpi, int uses, Buffers& buffers) {
  MPI_Datatype type = made(subject, mpi);
  for (int i = 0; i < uses; ++i) {
    std::fill(buffers.packed.begin(), buffers.packed.end(), 0);
    use(mpi, type, 1, buffers);
    if (buffers.packed == buffers.expected) continue;
    std::fprintf(stderr, "datatypes: wrong bytes in use %d of %s\n", i, subject.name.c_str());
    std::exit(1);
  }
  mpi.free(&type);
}

double now() { return gapless::bench::thread_seconds(); }

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  double life = 0, free = 0;  ///< seconds
  double memory = 0;          ///< bytes more at the peak
};

/// MPI_Type_free alone, of many types that were all used before.
double free_seconds(const Subject& subject, const Functions& mpi, int uses, Buffers& buffers) {
  constexpr std::size_t count = 64;
  std::vector<MPI_Datatype> types;
  for (std::size_t i = 0; i < count; ++i) types.push_back(made(subject, mpi));
  for (const MPI_Datatype type : types) use(mpi, type, uses, buffers);
  const double start = now();
  for (MPI_Datatype& type : types) mpi.free(&type);
  return (now() - start) / count;
}

std::pair<Times, Times> measure_small(const Subject& subject, const Functions& native, int uses, Buffers& buffers) {
  const auto life = [&](const Functions& mpi) {
    return [&subject, &mpi, uses, &buffers] {
      MPI_Datatype type = made(subject, mpi);
      use(mpi, type, uses, buffers);
      mpi.free(&type);
    };
  };
  const auto timings = gapless::bench::measure({{"gapless", life(program)}, {"native", life(native)}}, 301,
                                               uses == 100 ? 1e-3 : 2e-4, gapless::bench::thread_seconds);
  std::vector<double> frees, native_frees;
  // Each begins in turn: who frees finds the heap as the one before has left it.
  for (int sample = 0; sample < 202; ++sample) {
    const bool is_native = (sample + sample / 2) % 2 == 1;
    (is_native ? native_frees : frees).push_back(free_seconds(subject, is_native ? native : program, uses, buffers));
  }
  return {{timings[0].median, median(frees)}, {timings[1].median, median(native_frees)}};
}

/// So many samples of what is huge that they take a second or two, and at least three.
class HugeSamples {
 public:
  bool are_enough() const { return count_ >= 15 || (count_ >= 3 && now() - start_ > 2); }
  int next() { return count_++; }

 private:
  double start_ = now();
  int count_ = 0;
};

/// Resident memory of the process, now and at the highest since the mark was reset, in bytes.
double status_field(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name, 0) == 0) return 1024 * std::atof(line.c_str() + std::strlen(name) + 1);
  }
  return 0;
}

Times measure_huge_once(const Subject& subject, const Functions& mpi, int uses, Buffers& buffers) {
  MPI_Datatype type = made(subject, mpi);
  std::ofstream("/proc/self/clear_refs") << "5";
  const double memory = status_field("VmRSS");
  const double start = now();
  use(mpi, type, uses, buffers);
  const double before_free = now();
  mpi.free(&type);
  const double end = now();
  return {end - start, end - before_free, status_field("VmHWM") - memory};
}

std::pair<Times, Times> measure_huge(const Subject& subject, const Functions& native, int uses, Buffers& buffers) {
  std::vector<Times> all[2];
  for (HugeSamples samples; !samples.are_enough();) {
    const int sample = samples.next();
    for (int turn = 0; turn < 2; ++turn) {
      const int who = (sample + turn) % 2;
      all[who].push_back(measure_huge_once(subject, who == 0 ? program : native, uses, buffers));
    }
  }
  std::pair<Times, Times> result;
  for (int who = 0; who < 2; ++who) {
    const auto middle = [&](double Times::*field) {
      std::vector<double> values;
      for (const Times& times : all[who]) values.push_back(times.*field);
      return median(values);
    };
    Times& times = who == 0 ? result.first : result.second;
    times = Times{middle(&Times::life), middle(&Times::free), middle(&Times::memory)};
  }
  return result;
}

void print(const Subject& subject, int uses, const Times& gapless, const Times& native) {
  std::printf(
      "{\"type\": \"%s\", \"blocks\": %zu, \"huge\": %s, \"list_bytes\": %zu, \"uses\": %d, \"interposed\": %s, "
      "\"gapless_us\": %.4f, \"native_us\": %.4f, \"gapless_free_us\": %.4f, \"native_free_us\": %.4f, "
      "\"gapless_memory\": %.0f, \"native_memory\": %.0f}\n",
      subject.name.c_str(), subject.blocks, subject.is_huge ? "true" : "false", subject.list_bytes, uses,
      gapless::bench::is_interposed() ? "true" : "false", gapless.life * 1e6, native.life * 1e6, gapless.free * 1e6,
      native.free * 1e6, gapless.memory, native.memory);
  std::fflush(stdout);
}

/// The first use, less the second one. Precondition: the first one analyses.
void measure_analysis(const Subject& subject, Buffers& buffers) {
  constexpr int small_samples = 301;
  std::vector<double> seconds, memory;
  HugeSamples huge;
  while (subject.is_huge ? !huge.are_enough() : seconds.size() < small_samples) {
    huge.next();
    MPI_Datatype type = made(subject, program);
    std::ofstream("/proc/self/clear_refs") << "5";
    const double before = status_field("VmRSS"), start = now();
    use(program, type, 1, buffers);
    const double first = now();
    use(program, type, 1, buffers);
    seconds.push_back(2 * first - start - now());
    memory.push_back(status_field("VmHWM") - before);
    program.free(&type);
  }
  std::printf(
      "{\"type\": \"%s\", \"blocks\": %zu, \"huge\": %s, \"list_bytes\": %zu, \"interposed\": %s, \"analysis_us\": "
      "%.4f, "
      "\"memory\": %.0f}\n",
      subject.name.c_str(), subject.blocks, subject.is_huge ? "true" : "false", subject.list_bytes,
      gapless::bench::is_interposed() ? "true" : "false", median(seconds) * 1e6,
      *std::max_element(memory.begin(), memory.end()));
  std::fflush(stdout);
}

struct Options {
  std::string only, kind;
  int uses = 0;
  bool is_analysis = false;

  bool want(const SubjectMaker& subject) const {
    const bool is_of_kind = kind.empty() || (kind == "huge") == subject.is_huge;
    return is_of_kind && subject.name.find(only) != std::string::npos;
  }
  /// A hundred uses of the hugest take longer than all the rest.
  bool want(const Subject& subject, int number) const {
    constexpr std::size_t hugest = 10000000;
    return (uses == 0 || uses == number) && !(number == 100 && subject.blocks == hugest);
  }
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0) options.only = argv[i + 1];
    if (std::strcmp(argv[i], "--kind") == 0) options.kind = argv[i + 1];
    if (std::strcmp(argv[i], "--uses") == 0) options.uses = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--analysis") == 0) options.is_analysis = true;
  }
  return options;
}

void measure_uses(const Subject& subject, const Functions& native, const Options& options, Buffers& buffers) {
  verify(subject, program, 10, buffers);
  verify(subject, native, 1, buffers);
  for (const int uses : {1, 10, 100}) {
    if (!options.want(subject, uses)) continue;
    if (!subject.is_huge) verify(subject, program, uses, buffers);
    const auto [gapless, by_library] =
        subject.is_huge ? measure_huge(subject, native, uses, buffers) : measure_small(subject, native, uses, buffers);
    print(subject, uses, gapless, by_library);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const Options options = parse(argc, argv);
  const Functions native = native_functions();
  for (const SubjectMaker& maker : subjects()) {
    if (!options.want(maker)) continue;
    Subject subject = maker.make();
    subject.name = maker.name;
    Buffers buffers(subject);
    if (options.is_analysis) {
      verify(subject, program, 2, buffers);
      measure_analysis(subject, buffers);
    } else {
      measure_uses(subject, native, options, buffers);
    }
  }
  MPI_Finalize();
}
