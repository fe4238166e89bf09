// One way of doing a piece of work, and timing several of them fairly on the GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "gapless/gapless.h"

namespace gapless::bench {

/// Where one copy of the work lies.
struct Spot {
  char* memory;
  char* packed;
};

struct Contestant {
  std::string name;
  std::function<void(const Spot&, gapless_direction, cudaStream_t)> issue;  ///< asynchronous
  bool capturable = true;                                                   ///< may be issued to a capturing stream
};

struct Effort {
  int samples;
  double sample_seconds;  ///< how long one sample should be
};

/// Seconds a call on the GPU, median of the samples, for each contestant; samples are interleaved. Calls go round the
/// spots. A sample is a CUDA graph of many calls, so that the GPU never waits for the CPU to issue them; contestants
/// that cannot be captured are issued one call after the other.
std::vector<double> gpu_seconds(const std::vector<const Contestant*>& contestants, const std::vector<Spot>& spots,
                                gapless_direction direction, const Effort& effort);

/// The contestant that is fastest after a short look.
std::size_t fastest(const std::vector<Contestant>& contestants, const std::vector<Spot>& spots,
                    gapless_direction direction);

double median(std::vector<double> values);

}  // namespace gapless::bench
