// GPU memory for test programs: the simulated device named by GAPLESS_DEVICE_PLUGIN, or a real GPU through libcudart
// where GAPLESS_TEST_CUDA=1. Both are found at run time; the programs link neither.
#pragma once

#include <cstddef>

namespace gapless::test {

class GpuMemory {
 public:
  explicit GpuMemory(std::size_t bytes);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  void* data() { return memory_; }
  void write(const void* host);
  void read(void* host);

 private:
  void* memory_;
  std::size_t bytes_;
};

/// Can failures be had on request? With the simulated device only.
bool can_fail();
/// Makes the next `operation` of the device fail, once (simulated_device.h names the operations).
void fail_next(const char* operation);

}  // namespace gapless::test
