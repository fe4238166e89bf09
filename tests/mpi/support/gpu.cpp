#include "support/gpu.hpp"

#include <dlfcn.h>

#include <cstdint>
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
  void* (*allocate)(GpuMemory kind, std::size_t bytes);
  void (*release)(GpuMemory kind, void* memory);
  bool (*write)(void* memory, const void* host, std::size_t bytes);
  bool (*read)(void* host, const void* memory, std::size_t bytes);
  void (*reset)();
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
    [](GpuMemory, std::size_t bytes) {
      return in_plugin<void*(int, std::size_t)>("simulated_device_malloc")(0, bytes);
    },
    [](GpuMemory, void* memory) { in_plugin<void(void*)>("simulated_device_free")(memory); },
    [](void* memory, const void* host, std::size_t bytes) {
      return in_plugin<int(void*, const void*, std::size_t)>("simulated_device_write")(memory, host, bytes) == 0;
    },
    [](void* host, const void* memory, std::size_t bytes) {
      return in_plugin<int(void*, const void*, std::size_t)>("simulated_device_read")(host, memory, bytes) == 0;
    },
    [] { in_plugin<void(int)>("simulated_device_reset")(0); },
};

using DevicePointer = unsigned long long;

/// Makes the context that CUDA programs share current in this thread.
void enter_context(void* driver) {
  void* context = nullptr;
  if (find<int(void**, int)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0) != 0 ||
      find<int(void*)>(driver, "cuCtxSetCurrent")(context) != 0)
    give_up("libcuda.so.1 finds no GPU");
}

/// The driver, with that context current in this thread.
void* driver_library() {
  static void* library = [] {
    void* opened = dlopen("libcuda.so.1", RTLD_NOW);
    if (!opened) give_up("libcuda.so.1 is not there");
    if (find<int(unsigned)>(opened, "cuInit")(0) != 0) give_up("libcuda.so.1 finds no GPU");
    return opened;
  }();
  thread_local const bool has_entered = (enter_context(library), true);
  static_cast<void>(has_entered);
  return library;
}

template <typename... Arguments>
void call(const char* function, Arguments... arguments) {
  const int error = find<int(Arguments...)>(driver_library(), function)(arguments...);
  if (error != 0) give_up(std::string(function) + " failed with error " + std::to_string(error));
}

// Of cuda.h, as far as it is needed, so that the tests compile without the toolkit.
struct Location {
  int type, id;
};
constexpr Location first_gpu{1 /* CU_MEM_LOCATION_TYPE_DEVICE */, 0};
struct AllocationProperties {
  int type = 1;  ///< CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;
  Location location = first_gpu;
  void* windows_handle = nullptr;
  std::uint64_t flags = 0;
};
struct AccessDescription {
  Location location = first_gpu;
  int flags = 3;  ///< CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};
/// A multiple of every GPU's granularity, and more than any test asks for.
constexpr std::size_t mapping_bytes = std::size_t{8} << 20;

DevicePointer map_memory(std::size_t bytes) {
  if (bytes > mapping_bytes) give_up("more memory than one mapping of the tests");
  const AllocationProperties properties;
  const AccessDescription access;
  unsigned long long handle = 0;
  DevicePointer pointer = 0;
  call("cuMemCreate", &handle, mapping_bytes, &properties, 0ULL);
  call("cuMemAddressReserve", &pointer, mapping_bytes, std::size_t{0}, DevicePointer{0}, 0ULL);
  call("cuMemMap", pointer, mapping_bytes, std::size_t{0}, handle, 0ULL);
  call("cuMemSetAccess", pointer, mapping_bytes, &access, std::size_t{1});
  call("cuMemRelease", handle);  // the mapping keeps the memory
  return pointer;
}

void* allocate_real(GpuMemory kind, std::size_t bytes) {
  DevicePointer pointer = 0;
  void* host = nullptr;
  switch (kind) {
    case GpuMemory::plain:
      call("cuMemAlloc_v2", &pointer, bytes);
      break;
    case GpuMemory::pool:
      call("cuMemAllocAsync", &pointer, bytes, static_cast<void*>(nullptr));
      break;
    case GpuMemory::mapped:
      pointer = map_memory(bytes);
      break;
    case GpuMemory::managed:
      call("cuMemAllocManaged", &pointer, bytes, 1U /* CU_MEM_ATTACH_GLOBAL */);
      break;
    case GpuMemory::pinned:
      call("cuMemAllocHost_v2", &host, bytes);
      return host;
  }
  return reinterpret_cast<void*>(pointer);
}

void release_real(GpuMemory kind, void* memory) {
  const auto pointer = reinterpret_cast<DevicePointer>(memory);
  switch (kind) {
    case GpuMemory::plain:
    case GpuMemory::managed:
      return call("cuMemFree_v2", pointer);
    case GpuMemory::pool:
      return call("cuMemFreeAsync", pointer, static_cast<void*>(nullptr));
    case GpuMemory::mapped:
      call("cuMemUnmap", pointer, mapping_bytes);
      return call("cuMemAddressFree", pointer, mapping_bytes);
    case GpuMemory::pinned:
      return call("cuMemFreeHost", memory);
  }
}

constexpr Gpu real = {
    allocate_real,
    release_real,
    [](void* memory, const void* host, std::size_t bytes) {
      return find<int(DevicePointer, const void*, std::size_t)>(driver_library(), "cuMemcpyHtoD_v2")(
                 reinterpret_cast<DevicePointer>(memory), host, bytes) == 0;
    },
    [](void* host, const void* memory, std::size_t bytes) {
      return find<int(void*, DevicePointer, std::size_t)>(driver_library(), "cuMemcpyDtoH_v2")(
                 host, reinterpret_cast<DevicePointer>(memory), bytes) == 0;
    },
    [] {
      call("cuDevicePrimaryCtxReset_v2", 0);
      enter_context(driver_library());
    },
};

const Gpu& gpu() { return gpu_fails_on_request() ? simulated : real; }

}  // namespace

const char* name(GpuMemory kind) {
  constexpr const char* names[] = {"plain", "pool", "mapped", "managed", "pinned"};
  return names[static_cast<int>(kind)];
}

std::vector<GpuMemory> kinds_at_hand() {
  if (gpu_fails_on_request()) return {GpuMemory::plain};
  return {GpuMemory::plain, GpuMemory::pool, GpuMemory::mapped, GpuMemory::managed, GpuMemory::pinned};
}

OnGpu::OnGpu(const std::vector<std::byte>& bytes, GpuMemory kind)
    : kind_(kind), memory_(gpu().allocate(kind, bytes.empty() ? 1 : bytes.size())), size_(bytes.size()) {
  if (!memory_) give_up("no memory left");
  if (size_ > 0 && !gpu().write(memory_, bytes.data(), size_)) give_up("copy to the GPU failed");
}

OnGpu::~OnGpu() { gpu().release(kind_, memory_); }

std::vector<std::byte> OnGpu::bytes() const {
  std::vector<std::byte> result(size_);
  if (size_ > 0 && !gpu().read(result.data(), memory_, size_)) give_up("copy from the GPU failed");
  return result;
}

void OnGpu::write(const std::vector<std::byte>& bytes) {
  if (!gpu().write(memory_, bytes.data(), size_)) give_up("copy to the GPU failed");
}

void reset_gpu() { gpu().reset(); }

bool gpu_fails_on_request() { return std::getenv("GAPLESS_DEVICE_PLUGIN") != nullptr; }

std::size_t gpu_bytes_in_use() { return in_plugin<std::size_t()>("simulated_device_bytes_in_use")(); }
long gpu_count(const char* what) { return in_plugin<long(const char*)>("simulated_device_count")(what); }

void fail_next(const char* operation, long times, long successes) {
  in_plugin<int(const char*, long, long)>("simulated_device_fail")(operation, successes, times);
}

}  // namespace gapless::test
