// GPU memory for test programs: the simulated GPU where GAPLESS_DEVICE_PLUGIN names its library, else a real one
// through the driver. Both are found at run time; the programs link neither.
#pragma once

#include <cstddef>
#include <vector>

namespace gapless::test {

/// How memory that a GPU can address was made. The simulated GPU knows `plain` only.
enum class GpuMemory {
  plain,    ///< cuMemAlloc
  pool,     ///< cuMemAllocAsync
  mapped,   ///< virtual memory management: cuMemCreate and cuMemMap
  managed,  ///< cuMemAllocManaged, which the CPU can address too
  pinned,   ///< cuMemAllocHost: page-locked memory of the host
};
const char* name(GpuMemory kind);
std::vector<GpuMemory> kinds_at_hand();

/// A copy of some bytes in GPU memory. Where there is no GPU at all the program says so and ends.
class OnGpu {
 public:
  explicit OnGpu(const std::vector<std::byte>& bytes, GpuMemory kind = GpuMemory::plain);
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  void* at(std::ptrdiff_t offset = 0) { return static_cast<std::byte*>(memory_) + offset; }
  std::vector<std::byte> bytes() const;
  /// Replaces all bytes.
  void write(const std::vector<std::byte>& bytes);

 private:
  GpuMemory kind_;
  void* memory_;
  std::size_t size_;
};

/// Destroys all that this process has on the GPU, as cudaDeviceReset does. No OnGpu may be left.
void reset_gpu();

/// Can failures be had on request? Of the simulated GPU only.
bool gpu_fails_on_request();
/// What the simulated GPU has done so far (simulated_device.h has the words).
long gpu_count(const char* what);
/// Bytes of memory of the simulated GPU and page-locked for it.
std::size_t gpu_bytes_in_use();
/// Makes the next `operation` of the simulated GPU fail, so many times, after so many that do not (simulated_device.h
/// names the operations).
void fail_next(const char* operation, long times = 1, long successes = 0);

}  // namespace gapless::test
