// GPU memory for benchmark programs that need no toolkit: by the driver, found at run time.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace gapless::bench {

[[noreturn]] inline void give_up(const char* why) {
  std::printf("{\"wrong\": \"%s\"}\n", why);
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// The driver's functions, so that the program needs no toolkit.
template <class... Arguments>
void driver(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) give_up("there is no GPU driver");
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr || function(arguments...) != 0) give_up(name);
}

/// Memory of a GPU of the process's own, as far as there are some, or of the host.
class Memory {
 public:
  Memory(bool on_gpu, std::size_t bytes) : host_(bytes), on_gpu_(on_gpu) {
    if (on_gpu) driver("cuMemAlloc_v2", &address_, bytes);
  }
  ~Memory() {
    if (on_gpu_) driver("cuMemFree_v2", address_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() { return on_gpu_ ? reinterpret_cast<void*>(address_) : host_.data(); }
  std::vector<unsigned char>& contents() { return host_; }
  void write() { write(host_.size()); }
  void read() { read(host_.size()); }
  /// The contents' first bytes go into the memory, or come from there.
  void write(std::size_t bytes) {
    if (on_gpu_) driver("cuMemcpyHtoD_v2", address_, static_cast<const void*>(host_.data()), bytes);
  }
  void read(std::size_t bytes) {
    if (on_gpu_) driver("cuMemcpyDtoH_v2", static_cast<void*>(host_.data()), address_, bytes);
  }

 private:
  std::vector<unsigned char> host_;
  bool on_gpu_;
  unsigned long long address_ = 0;
};

/// One of its own for each rank, as far as there are some.
inline void use_gpu(int rank) {
  int count = 0, device = 0;
  void* context = nullptr;
  driver("cuInit", 0U);
  driver("cuDeviceGetCount", &count);
  if (count == 0) give_up("there is no GPU");
  driver("cuDeviceGet", &device, rank % count);
  driver("cuDevicePrimaryCtxRetain", &context, device);
  driver("cuCtxSetCurrent", context);
}

}  // namespace gapless::bench
