// Buffers of numbers that a program gives to MPI, in host memory or in a GPU's; most tests use ints.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/gpu.hpp"

namespace gapless::test {

/// Does this run have a GPU, simulated or (GAPLESS_TEST_GPU=1) real?
inline bool has_gpu() { return gpu_fails_on_request() || std::getenv("GAPLESS_TEST_GPU") != nullptr; }
/// Does the MPI library read GPU memory itself, so that contiguous messages of it are the library's?
inline bool library_reads_gpu() { return std::getenv("GAPLESS_GPU_AWARE") != nullptr; }

/// Where the two ends of a message are.
struct Ends {
  bool from_gpu, to_gpu;
};
inline std::vector<Ends> all_ends() {
  if (!has_gpu()) return {{false, false}};
  return {{false, false}, {true, true}, {true, false}, {false, true}};
}
inline std::string text(const Ends& ends) {
  return std::string(ends.from_gpu ? "from the GPU" : "from the host") + (ends.to_gpu ? " to the GPU" : " to the host");
}

template <class Number>
class NumberBuffer {
 public:
  NumberBuffer(const std::vector<Number>& values, bool on_gpu) : host_(values) {
    if (on_gpu) gpu_ = std::make_unique<OnGpu>(bytes_of(values));
  }
  void* data() { return gpu_ ? gpu_->at() : host_.data(); }
  std::vector<Number> values() const {
    if (!gpu_) return host_;
    const std::vector<std::byte> bytes = gpu_->bytes();
    std::vector<Number> result(host_.size());
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  void set(const std::vector<Number>& values) {
    host_ = values;
    if (gpu_) gpu_->write(bytes_of(values));
  }

 private:
  static std::vector<std::byte> bytes_of(const std::vector<Number>& values) {
    std::vector<std::byte> result(values.size() * sizeof(Number));
    std::memcpy(result.data(), values.data(), result.size());
    return result;
  }

  std::vector<Number> host_;
  std::unique_ptr<OnGpu> gpu_;
};

using Ints = NumberBuffer<int>;

}  // namespace gapless::test
