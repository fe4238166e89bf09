#include "support/gpu.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gapless::test {
namespace {

constexpr int host_to_device = 1;  // cudaMemcpyHostToDevice
constexpr int device_to_host = 2;

bool use_cuda() {
  const char* text = std::getenv("GAPLESS_TEST_CUDA");
  return text && std::strcmp(text, "1") == 0;
}

void* open_library() {
  void* library = nullptr;
  if (use_cuda()) {
    for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so"})
      if (!library) library = dlopen(name, RTLD_NOW);
  } else if (const char* path = std::getenv("GAPLESS_DEVICE_PLUGIN")) {
    library = dlopen(path, RTLD_NOW);
  }
  if (!library) {
    std::fprintf(stderr, "No GPU to test with: %s\n",
                 use_cuda() ? dlerror() : "GAPLESS_DEVICE_PLUGIN names no library");
    std::exit(2);
  }
  return library;
}

template <typename Function>
Function* find(const char* name) {
  static void* library = open_library();
  void* function = dlsym(library, name);
  if (!function) {
    std::fprintf(stderr, "The GPU library has no %s\n", name);
    std::exit(2);
  }
  return reinterpret_cast<Function*>(function);
}

void cuda_copy(void* to, const void* from, std::size_t bytes, int direction) {
  static auto* copy = find<int(void*, const void*, std::size_t, int)>("cudaMemcpy");
  if (copy(to, from, bytes, direction) != 0) std::fprintf(stderr, "cudaMemcpy failed\n"), std::exit(2);
}

}  // namespace

GpuMemory::GpuMemory(std::size_t bytes) : memory_(nullptr), bytes_(bytes) {
  if (use_cuda()) {
    find<int(void**, std::size_t)>("cudaMalloc")(&memory_, bytes);
  } else {
    memory_ = find<void*(int, std::size_t)>("simulated_device_malloc")(0, bytes);
  }
  if (!memory_) std::fprintf(stderr, "No GPU memory\n"), std::exit(2);
}

GpuMemory::~GpuMemory() {
  if (use_cuda()) {
    find<int(void*)>("cudaFree")(memory_);
  } else {
    find<void(void*)>("simulated_device_free")(memory_);
  }
}

void GpuMemory::write(const void* host) {
  if (use_cuda()) return cuda_copy(memory_, host, bytes_, host_to_device);
  find<int(void*, const void*, std::size_t)>("simulated_device_write")(memory_, host, bytes_);
}

void GpuMemory::read(void* host) {
  if (use_cuda()) return cuda_copy(host, memory_, bytes_, device_to_host);
  find<int(void*, const void*, std::size_t)>("simulated_device_read")(host, memory_, bytes_);
}

bool can_fail() { return !use_cuda(); }

void fail_next(const char* operation) { find<int(const char*, long, long)>("simulated_device_fail")(operation, 0, 1); }

}  // namespace gapless::test
