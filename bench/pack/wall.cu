#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>

#include "contestants/contestant.hpp"
#include "wall.hpp"

namespace gapless::bench {
namespace {

__global__ void set_flag(volatile std::uint32_t* flag, std::uint32_t value) { *flag = value; }
__global__ void nothing() {}

double seconds_of(const WaitedCall& call) {
  const auto start = std::chrono::steady_clock::now();
  call.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::vector<double> wall_seconds(const std::vector<WaitedCall>& calls, int samples) {
  std::vector<std::vector<double>> all(calls.size());
  for (int sample = -samples / 8; sample < samples; ++sample) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const double seconds = seconds_of(calls[i]);
      if (sample >= 0) all[i].push_back(seconds);
    }
  }
  std::vector<double> medians;
  for (auto& values : all) medians.push_back(median(std::move(values)));
  return medians;
}

Launches::Launches() : flag_(sizeof(std::uint32_t), Place::mapped_host) {
  *reinterpret_cast<std::uint32_t*>(flag_.data()) = 0;
}

void Launches::launch_and_poll() {
  auto* flag = reinterpret_cast<volatile std::uint32_t*>(flag_.data());
  set_flag<<<1, 1, 0, stream_>>>(flag, ++sequence_);
  check(cudaPeekAtLastError(), "launching a kernel");
  while (*flag != sequence_) {
  }
}

void Launches::launch_and_synchronise() {
  nothing<<<1, 1, 0, stream_>>>();
  stream_.wait();
}

}  // namespace gapless::bench
