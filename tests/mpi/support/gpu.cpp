#include "support/gpu.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace gapless::test {
namespace {

/// Nothing here is under test: whatever fails ends the program, and ctest is told by this text what was missing.
[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "GPU tests: %s\n", why.c_str());
  std::exit(1);
}

template <typename Function>
Function* find(void* library, const char* name) {
  void* function = dlsym(library, name);
  if (!function) give_up(std::string("no function ") + name);
  return reinterpret_cast<Function*>(function);
}

/// What the tests need of a GPU, simulated or real.
struct Gpu {
  void* (*allocate)(std::size_t bytes);
  void (*release)(void* memory);
  bool (*write)(void* memory, const void* host, std::size_t bytes);
  bool (*read)(void* host, const void* memory, std::size_t bytes);
};

void* plugin_library() {
  static void* library = [] {
    void* opened = dlopen(std::getenv("GAPLESS_DEVICE_PLUGIN"), RTLD_NOW);
    if (!opened) give_up(dlerror());
    return opened;
  }();
  return library;
}

template <typename Function>
Function* in_plugin(const char* name) {
  return find<Function>(plugin_library(), name);
}

constexpr Gpu simulated = {
    [](std::size_t bytes) { return in_plugin<void*(int, std::size_t)>("simulated_device_malloc")(0, bytes); },
    [](void* memory) { in_plugin<void(void*)>("simulated_device_free")(memory); },
    [](void* memory, const void* host, std::size_t bytes) {
      return in_plugin<int(void*, const void*, std::size_t)>("simulated_device_write")(memory, host, bytes) == 0;
    },
    [](void* host, const void* memory, std::size_t bytes) {
      return in_plugin<int(void*, const void*, std::size_t)>("simulated_device_read")(host, memory, bytes) == 0;
    },
};

using DevicePointer = unsigned long long;

/// The driver, with the context that CUDA programs share current in this thread.
void* driver_library() {
  static void* library = [] {
    void* opened = dlopen("libcuda.so.1", RTLD_NOW);
    if (!opened) give_up("libcuda.so.1 is not there");
    void* context = nullptr;
    if (find<int(unsigned)>(opened, "cuInit")(0) != 0 ||
        find<int(void**, int)>(opened, "cuDevicePrimaryCtxRetain")(&context, 0) != 0 ||
        find<int(void*)>(opened, "cuCtxSetCurrent")(context) != 0)
      give_up("libcuda.so.1 finds no GPU");
    return opened;
  }();
  return library;
}

constexpr Gpu real = {
    [](std::size_t bytes) {
      DevicePointer pointer = 0;
      find<int(DevicePointer*, std::size_t)>(driver_library(), "cuMemAlloc_v2")(&pointer, bytes);
      return reinterpret_cast<void*>(pointer);
    },
    [](void* memory) {
      find<int(DevicePointer)>(driver_library(), "cuMemFree_v2")(reinterpret_cast<DevicePointer>(memory));
    },
    [](void* memory, const void* host, std::size_t bytes) {
      return find<int(DevicePointer, const void*, std::size_t)>(driver_library(), "cuMemcpyHtoD_v2")(
                 reinterpret_cast<DevicePointer>(memory), host, bytes) == 0;
    },
    [](void* host, const void* memory, std::size_t bytes) {
      return find<int(void*, DevicePointer, std::size_t)>(driver_library(), "cuMemcpyDtoH_v2")(
                 host, reinterpret_cast<DevicePointer>(memory), bytes) == 0;
    },
};

const Gpu& gpu() { return gpu_fails_on_request() ? simulated : real; }

}  // namespace

OnGpu::OnGpu(const std::vector<std::byte>& bytes)
    : memory_(gpu().allocate(bytes.empty() ? 1 : bytes.size())), size_(bytes.size()) {
  if (!memory_) give_up("no memory left");
  if (size_ > 0 && !gpu().write(memory_, bytes.data(), size_)) give_up("copy to the GPU failed");
}

OnGpu::~OnGpu() { gpu().release(memory_); }

std::vector<std::byte> OnGpu::bytes() const {
  std::vector<std::byte> result(size_);
  if (size_ > 0 && !gpu().read(result.data(), memory_, size_)) give_up("copy from the GPU failed");
  return result;
}

bool gpu_fails_on_request() { return std::getenv("GAPLESS_DEVICE_PLUGIN") != nullptr; }

void fail_next(const char* operation) {
  in_plugin<int(const char*, long, long)>("simulated_device_fail")(operation, 0, 1);
}

}  // namespace gapless::test
