// Table 2 of Jenkins et al., and long rows and lists beside it: a pack while the program keeps the multiprocessors or
// the bus busy, by whatever gapless chooses, by a kernel and by the copy engine. The time of the second of two
// operations from its issue to its end, and of both together. gapless is given time to learn what the others are told.
#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <iterator>

#include "blocking.hpp"
#include "gpu.hpp"
#include "pack/gpu_engine.hpp"
#include "tables/tables.hpp"

namespace gapless::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds vectors, with enough blocks that every multiprocessor stays full until the end.
__global__ void add(const float* a, float* b, std::size_t count, int rounds) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = b[i];
  for (int round = 0; round < rounds; ++round) sum = sum * 0.999F + a[i];
  b[i] = sum;
}

struct Operation {
  std::string name;
  std::function<void(cudaStream_t)> issue;
  bool waits = false;  ///< it is done when it has been issued
};

struct Times {
  double second, total;
};

/// Issues both and waits for both; seconds from the second's issue to its end, and from the first's to the last end.
Times run_pair(const Operation& first, const Operation& second, const Stream& a, const Stream& b) {
  const auto start = Clock::now();
  first.issue(a);
  const auto middle = Clock::now();
  second.issue(b);
  Clock::time_point second_end = Clock::now();
  bool first_done = false, second_done = second.waits;
  while (!first_done || !second_done) {
    first_done = first_done || cudaStreamQuery(a) == cudaSuccess;
    if (!second_done && cudaStreamQuery(b) == cudaSuccess) {
      second_done = true;
      second_end = Clock::now();
    }
  }
  const std::chrono::duration<double> waited = second_end - middle, total = Clock::now() - start;
  return {waited.count(), total.count()};
}

/// A pack by what `name` says: the one of these that gapless chooses, or has to take.
struct Engine {
  const char* name;
  const char* forced;
};
constexpr Engine engines[] = {{"gapless", ""}, {"kernel", "kernel"}, {"copy engine", "dma"}};
constexpr std::size_t engine_count = std::size(engines);

void choose(const Engine& engine) { pack::gpu_engine()->force_engine(engine.forced); }

/// Medians for each engine, samples interleaved.
std::array<Times, engine_count> measure(const Operation& first, const Operation& second, int samples) {
  const Stream a, b;
  std::vector<double> waited[engine_count], total[engine_count];
  for (int sample = -2; sample < samples; ++sample) {
    for (std::size_t turn = 0; turn < engine_count; ++turn) {
      // Whoever follows itself finds its kernel in the caches: the first two, which may be one and the same, take
      // turns.
      const std::size_t i = turn < 2 && sample % 2 != 0 ? 1 - turn : turn;
      choose(engines[i]);
      const Times times = run_pair(first, second, a, b);
      if (sample < 0) continue;
      waited[i].push_back(times.second);
      total[i].push_back(times.total);
    }
  }
  choose(engines[0]);
  std::array<Times, engine_count> medians{};
  for (std::size_t i = 0; i < engine_count; ++i)
    medians[i] = {median(std::move(waited[i])), median(std::move(total[i]))};
  return medians;
}

/// What is measured is what a program gets in the long run: as many pairs, or as much time in them, as learning takes.
void learn(const Operation& user, const Operation& pack) {
  constexpr int most_pairs = 400;
  constexpr double long_enough = 0.025;
  const Stream a, b;
  double spent = 0;
  for (int i = 0; i < most_pairs && spent < long_enough; ++i) spent += run_pair(user, pack, a, b).second;
}

/// What keeps the program's GPU or bus busy, for about as long as in the paper the pack takes.
class Users {
 public:
  std::vector<Operation> operations() const {
    return {{"multiprocessors", [this](cudaStream_t stream) { fill_multiprocessors(stream); }},
            {"CPU to GPU copy", [this](cudaStream_t stream) { copy(device_.data(), host_.data(), stream); }},
            {"GPU to CPU copy", [this](cudaStream_t stream) { copy(host_.data(), device_.data(), stream); }}};
  }

 private:
  static constexpr std::size_t bytes = std::size_t{32} << 20;

  static void copy(void* to, const void* from, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copying for the program");
  }
  void fill_multiprocessors(cudaStream_t stream) const {
    constexpr std::size_t count = bytes / sizeof(float);
    auto* a = reinterpret_cast<float*>(device_.data());
    add<<<static_cast<unsigned>(count / 1024), 1024, 0, stream>>>(a, a + count, count, 400);
    check(cudaPeekAtLastError(), "launching the program's kernel");
  }

  Memory device_{2 * bytes};
  Memory host_{bytes, Place::mapped_host};
};

struct Case {
  const Workload& work;
  const char* destination;
  Spot spot;
  int samples;
};

void print_case(const Case& which, const Users& users) {
  // As an MPI call does it, which returns when it is done; before the program's own work only a call that returns at
  // once can be.
  const Contestant waits = blocking_calls(which.work), issues = gapless_calls(which.work);
  const auto packing = [&](const Contestant& contestant) {
    return [&](cudaStream_t stream) { contestant.issue(which.spot, GAPLESS_PACK, stream); };
  };
  const Operation nothing{"nothing", [](cudaStream_t) {}};
  const Operation waited{"pack", packing(waits), true}, issued{"pack", packing(issues)};
  const auto alone = measure(nothing, waited, which.samples);
  for (const Operation& user : users.operations()) {
    const double user_alone = measure(nothing, user, which.samples)[0].second;
    learn(user, waited);
    for (const bool user_first : {true, false}) {
      const auto times = user_first ? measure(user, waited, which.samples) : measure(issued, user, which.samples);
      for (std::size_t i = 0; i < engine_count; ++i) {
        Row row;
        row.table = "contention";
        row.labels = {{"user", user.name},
                      {"layout", which.work.name},
                      {"engine", engines[i].name},
                      {"order", user_first ? "user first" : "pack first"},
                      {"destination", which.destination}};
        row.bytes = which.work.packed_bytes();
        row.value = times[i].second * 1e6;
        row.unit = "us";
        row.peers = {{"both together", times[i].total * 1e6},
                     {"user alone", user_alone * 1e6},
                     {"pack alone", alone[i].second * 1e6}};
        print(row);
      }
    }
  }
}

}  // namespace

void print_contention(const Setting& setting) {
  const Users users;
  std::vector<Workload> works;
  works.push_back(vector(262144, 8, 64));
  works.push_back(vector(512, 4096, 8192));
  works.push_back(ragged(256, 16 << 10));
  if (!setting.quick) works.push_back(vector(4096, 4096, 8192));
  const Memory host(std::size_t{16} << 20, Place::mapped_host);
  for (const Workload& work : works) {
    for (const bool to_host : {true, false}) {
      std::vector<Spot> spots = setting.arena.one_spot();
      if (to_host) spots[0].packed = host.data();
      const Contestant waits = blocking_calls(work);
      setting.arena.verify(work, {&waits}, spots);
      print_case({work, to_host ? "host" : "GPU", spots[0], setting.quick ? 5 : 21}, users);
    }
  }
}

}  // namespace gapless::bench
