// Table 2 of Jenkins et al., and long rows beside it: a pack while the program keeps the multiprocessors or the bus
// busy, by whatever gapless chooses, by a kernel and by the copy engine. The time of the second of two operations from
// its issue to its end, and of both together. gapless is given time to learn what the others are told.
#include <cuda_runtime.h>

#include <chrono>

#include "blocking.hpp"
#include "device/device.hpp"
#include "gpu.hpp"
#include "tables.hpp"

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

/// What a program gets in the long run: medians after as many pairs, or as much time in them, as learning takes.
Times median_pair(const Operation& first, const Operation& second, int samples) {
  constexpr int most_pairs = 400;
  constexpr double long_enough = 0.025;
  const Stream a, b;
  double learning = 0;
  for (int i = 0; i < most_pairs && learning < long_enough; ++i) {
    learning += run_pair(first, second, a, b).second;
  }
  std::vector<double> waited, total;
  for (int sample = 0; sample < samples; ++sample) {
    const Times times = run_pair(first, second, a, b);
    waited.push_back(times.second);
    total.push_back(times.total);
  }
  return {median(std::move(waited)), median(std::move(total))};
}

double alone(const Operation& operation, int samples) {
  const Operation nothing{"nothing", [](cudaStream_t) {}};
  return median_pair(nothing, operation, samples).second;
}

struct Case {
  const Workload& work;
  const char* destination;
  int samples;
};

void print_pair(const Case& which, const Operation& user, const Operation& pack, bool user_first) {
  const Times times = user_first ? median_pair(user, pack, which.samples) : median_pair(pack, user, which.samples);
  Row row;
  row.table = "contention";
  row.labels = {{"user", user.name},
                {"layout", which.work.name},
                {"engine", pack.name},
                {"order", user_first ? "user first" : "pack first"},
                {"destination", which.destination}};
  row.bytes = which.work.packed_bytes();
  row.value = times.second * 1e6;
  row.unit = "us";
  row.peers = {{"both together", times.total * 1e6},
               {"user alone", alone(user, which.samples) * 1e6},
               {"pack alone", alone(pack, which.samples) * 1e6}};
  print(row);
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

void print_case(const Case& which, const Users& users, const Spot& spot) {
  // As an MPI call does it, which returns when it is done; before the program's own work only a call that returns at
  // once can be.
  const Contestant waits = blocking_calls(which.work), issues = gapless_calls(which.work);
  const auto packing = [spot](const Contestant& contestant) {
    return [&contestant, spot](cudaStream_t stream) { contestant.issue(spot, GAPLESS_PACK, stream); };
  };
  for (const Operation& user : users.operations()) {
    for (const auto& [name, engine] : {std::pair{"gapless", ""}, {"kernel", "kernel"}, {"copy engine", "dma"}}) {
      device::runtime()->force_engine(engine);
      print_pair(which, user, {name, packing(waits), true}, true);
      print_pair(which, user, {name, packing(issues)}, false);
    }
  }
  device::runtime()->force_engine("");
}

}  // namespace

void print_contention(const Setting& setting) {
  const Users users;
  std::vector<Workload> works;
  works.push_back(vector(262144, 8, 64));
  works.push_back(vector(512, 4096, 8192));
  if (!setting.quick) works.push_back(vector(4096, 4096, 8192));
  const Memory host(std::size_t{16} << 20, Place::mapped_host);
  for (const Workload& work : works) {
    for (const bool to_host : {true, false}) {
      std::vector<Spot> spots = setting.arena.one_spot();
      if (to_host) spots[0].packed = host.data();
      const Contestant waits = blocking_calls(work);
      setting.arena.verify(work, {&waits}, spots);
      print_case({work, to_host ? "host" : "GPU", setting.quick ? 5 : 11}, users, spots[0]);
    }
  }
}

}  // namespace gapless::bench
