// GPU memory for test programs: the simulated GPU where GAPLESS_DEVICE_PLUGIN names its library, else a real one
// through the driver. Both are found at run time; the programs link neither.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gapless::test {

/// A copy of some bytes in GPU memory. Where there is no GPU at all the program says so and ends.
class OnGpu {
 public:
  explicit OnGpu(const std::vector<std::byte>& bytes);
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  void* at(std::ptrdiff_t offset = 0) { return static_cast<std::byte*>(memory_) + offset; }
  std::vector<std::byte> bytes() const;

 private:
  void* memory_;
  std::size_t size_;
};

/// Can failures be had on request? Of the simulated GPU only.
bool gpu_fails_on_request();
/// Makes the next `operation` of the simulated GPU fail, once (simulated_device.h names the operations).
void fail_next(const char* operation);

}  // namespace gapless::test
