// Times on the CPU's clock, of calls that are complete when they return.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu.hpp"

namespace gapless::bench {

struct WaitedCall {
  std::string name;
  std::function<void()> run;
};

/// Seconds a call, median, for each; the calls are interleaved one by one.
std::vector<double> wall_seconds(const std::vector<WaitedCall>& calls, int samples);

/// The least that starting GPU work and learning of its end costs: kernels that do nothing else.
class Launches {
 public:
  Launches();
  /// A kernel sets a flag in host memory, which the CPU polls.
  void launch_and_poll();
  void launch_and_synchronise();

 private:
  Stream stream_;
  Memory flag_;
  std::uint32_t sequence_ = 0;
};

}  // namespace gapless::bench
