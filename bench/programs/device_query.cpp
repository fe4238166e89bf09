// What does it cost to ask which memory a pointer names? Every MPI call with a host buffer pays it in a program that
// uses a GPU. Prints one JSON line a case: nanoseconds a query, the median of rounds. Needs a GPU to say anything of
// the driver.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "device/device.hpp"

namespace {

// The driver's interface as far as it is needed, so that this builds without the CUDA toolkit.
template <class Function>
Function driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library != nullptr ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

constexpr int attribute_memory_type = 2, attribute_is_managed = 8, attribute_device_ordinal = 9;

template <class Query>
double nanoseconds(const Query& query) {
  constexpr int queries = 2000;
  std::vector<double> rounds;
  for (int round = 0; round < 101; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < queries; ++i) query();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    rounds.push_back(spent.count() / queries);
  }
  std::nth_element(rounds.begin(), rounds.begin() + 50, rounds.end());
  return rounds[50];
}

void print(const char* memory, const char* query, double value) {
  std::printf(
      "{\"benchmark\": \"device_query\", \"case\": {\"memory\": \"%s\", \"query\": \"%s\"}, \"value\": %.1f, "
      "\"unit\": \"ns\"}\n",
      memory, query, value);
}

void measure(const char* memory, void* pointer) {
  print(memory, "gapless locate", nanoseconds([&] { return gapless::device::locate(pointer); }));
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (const auto single = driver<int (*)(void*, int, unsigned long long)>("cuPointerGetAttribute")) {
    unsigned type = 0;
    print(memory, "cuPointerGetAttribute, memory type",
          nanoseconds([&] { return single(&type, attribute_memory_type, address); }));
  }
  if (const auto several = driver<int (*)(unsigned, int*, void**, unsigned long long)>("cuPointerGetAttributes")) {
    unsigned type = 0;
    int managed = 0, ordinal = 0;
    int attributes[] = {attribute_memory_type, attribute_is_managed, attribute_device_ordinal};
    void* values[] = {&type, &managed, &ordinal};
    print(memory, "cuPointerGetAttributes, memory type",
          nanoseconds([&] { return several(1, attributes, values, address); }));
    print(memory, "cuPointerGetAttributes, memory type, managed, ordinal",
          nanoseconds([&] { return several(3, attributes, values, address); }));
  }
}

void measure_host() {
  static int data = 0;
  int local = 0;
  const auto heap = std::make_unique<int>(0);
  constexpr std::size_t large = std::size_t{64} << 20;
  void* mapped = mmap(nullptr, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  measure("program data", &data);
  measure("stack", &local);
  measure("heap", heap.get());
  measure("mmap", mapped);
  munmap(mapped, large);
}

bool start_gpu() {
  const auto initialise = driver<int (*)(unsigned)>("cuInit");
  const auto retain = driver<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
  const auto make_current = driver<int (*)(void*)>("cuCtxSetCurrent");
  void* context = nullptr;
  return initialise != nullptr && initialise(0) == 0 && retain(&context, 0) == 0 && make_current(context) == 0;
}

}  // namespace

int main() {
  std::printf("{\"benchmark\": \"device_query\", \"phase\": \"before the program initialises the driver\"}\n");
  measure_host();
  if (!start_gpu()) {
    std::fprintf(stderr, "device_query: no usable GPU, so only the case without one was measured\n");
    return 0;
  }
  std::printf("{\"benchmark\": \"device_query\", \"phase\": \"in a program that uses a GPU\"}\n");
  measure_host();
  const auto allocate = driver<int (*)(unsigned long long*, std::size_t)>("cuMemAlloc_v2");
  const auto allocate_host = driver<int (*)(void**, std::size_t)>("cuMemAllocHost_v2");
  unsigned long long device_memory = 0;
  void* pinned = nullptr;
  if (allocate(&device_memory, 1 << 20) == 0) measure("device", reinterpret_cast<void*>(device_memory));
  if (allocate_host(&pinned, 1 << 20) == 0) measure("pinned", pinned);
  return 0;
}
