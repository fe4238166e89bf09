// Table 2 of Jenkins et al., 2014: a pack to host memory while the program keeps the multiprocessors or the bus busy,
// by kernel and by the copy engine. The time of the second of two operations from its issue to its end, and of both
// together.
#include <cuda_runtime.h>

#include <chrono>

#include "gpu.hpp"
#include "hand.hpp"
#include "tables.hpp"
#include "vendor.hpp"

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
};

struct Times {
  double second, total;
};

/// Issues both and polls both; seconds from the second's issue to its end, and from the first's to the last end.
Times run_pair(const Operation& first, const Operation& second, const Stream& a, const Stream& b) {
  const auto start = Clock::now();
  first.issue(a);
  const auto middle = Clock::now();
  second.issue(b);
  Clock::time_point second_end{};
  for (bool first_done = false, second_done = false; !first_done || !second_done;) {
    first_done = first_done || cudaStreamQuery(a) == cudaSuccess;
    if (!second_done && cudaStreamQuery(b) == cudaSuccess) {
      second_done = true;
      second_end = Clock::now();
    }
  }
  const std::chrono::duration<double> waited = second_end - middle, total = Clock::now() - start;
  return {waited.count(), total.count()};
}

Times median_pair(const Operation& first, const Operation& second, int samples) {
  const Stream a, b;
  std::vector<double> waited, total;
  for (int sample = -2; sample < samples; ++sample) {
    const Times times = run_pair(first, second, a, b);
    if (sample < 0) continue;
    waited.push_back(times.second);
    total.push_back(times.total);
  }
  return {median(std::move(waited)), median(std::move(total))};
}

double alone(const Operation& operation, int samples) {
  const Operation nothing{"nothing", [](cudaStream_t) {}};
  return median_pair(nothing, operation, samples).second;
}

void print_pair(const Operation& user, const Operation& pack, bool user_first, const char* destination, int samples) {
  const Times times = user_first ? median_pair(user, pack, samples) : median_pair(pack, user, samples);
  Row row;
  row.table = "contention";
  row.labels = {{"user", user.name},
                {"engine", pack.name},
                {"order", user_first ? "user first" : "pack first"},
                {"destination", destination}};
  row.bytes = 262144 * 8;
  row.value = times.second * 1e6;
  row.unit = "us";
  row.peers = {{"both together", times.total * 1e6},
               {"user alone", alone(user, samples) * 1e6},
               {"pack alone", alone(pack, samples) * 1e6}};
  print(row);
}

}  // namespace

void print_contention(const Setting& setting) {
  const Workload work = vector(262144, 8, 64);
  constexpr std::size_t user_bytes = std::size_t{32} << 20;
  const Memory device(2 * user_bytes), pinned(user_bytes, Place::mapped_host), host(user_bytes, Place::mapped_host);
  const auto copy = [&](void* to, const void* from) {
    return [=](cudaStream_t stream) {
      check(cudaMemcpyAsync(to, from, user_bytes, cudaMemcpyDefault, stream), "copying for the program");
    };
  };
  const auto fill_multiprocessors = [&](cudaStream_t stream) {
    constexpr std::size_t count = user_bytes / sizeof(float);
    auto* a = reinterpret_cast<float*>(device.data());
    add<<<static_cast<unsigned>(count / 1024), 1024, 0, stream>>>(a, a + count, count, 400);
    check(cudaPeekAtLastError(), "launching the program's kernel");
  };
  const Operation users[] = {{"multiprocessors", fill_multiprocessors},
                             {"CPU to GPU copy", copy(device.data(), pinned.data())},
                             {"GPU to CPU copy", copy(pinned.data(), device.data())}};
  const Contestant mine = gapless_calls(work);
  const std::vector<Contestant> calls = vendor_calls(work);
  const int samples = setting.quick ? 5 : 15;
  for (const bool to_host : {true, false}) {
    std::vector<Spot> spots = setting.arena.one_spot();
    if (to_host) spots[0].packed = host.data();
    setting.arena.verify(work, {&mine, &calls.front()}, spots);
    const Spot spot = spots[0];
    const Operation engines[] = {
        {"gapless", [&, spot](cudaStream_t stream) { mine.issue(spot, GAPLESS_PACK, stream); }},
        {"cudaMemcpy2DAsync", [&, spot](cudaStream_t stream) { calls.front().issue(spot, GAPLESS_PACK, stream); }}};
    for (const Operation& user : users) {
      for (const Operation& engine : engines) {
        for (const bool user_first : {true, false}) {
          print_pair(user, engine, user_first, to_host ? "host" : "GPU", samples);
        }
      }
    }
  }
}

}  // namespace gapless::bench
