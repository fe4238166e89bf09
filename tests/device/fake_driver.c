/* A libcuda.so.1 without a GPU. It answers what the memory of a pointer is, and maps memory as the real one does: by
   calling the C library. Set FAKE_DRIVER_RESERVES_NOTHING to have it map only what a test tells it to. */
#include "fake_driver.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { success = 0, out_of_memory = 2, not_supported = 801 };
enum { attribute_memory_type = 2, type_device = 2 };
enum { most_ranges = 64 };

static struct { unsigned long long begin, end; } ranges[most_ranges];
static int range_count;
static long query_count;

static int is_device_memory(unsigned long long pointer) {
  for (int i = 0; i < range_count; ++i) {
    if (pointer >= ranges[i].begin && pointer < ranges[i].end) return 1;
  }
  return 0;
}

static void give_out(void* address, size_t bytes) {
  ranges[range_count].begin = (unsigned long long)address;
  ranges[range_count++].end = (unsigned long long)address + bytes;
}

static void* reserve_at(void* address, size_t bytes) {
  void* const reserved = mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return reserved == MAP_FAILED ? NULL : reserved;
}

static void* reserve(size_t bytes) { return reserve_at(NULL, bytes); }

static int map(void* address, size_t bytes) {
  if (reserve_at(address, bytes) != address) return 0;
  give_out(address, bytes);
  return 1;
}

static long queries(void) { return query_count; }

int cuPointerGetAttributes(unsigned count, int* attributes, void** values, unsigned long long pointer) {
  ++query_count;
  for (unsigned i = 0; i < count; ++i) {
    *(int*)values[i] = attributes[i] == attribute_memory_type && is_device_memory(pointer) ? type_device : 0;
  }
  return success;
}

int cuMemAddressReserve(unsigned long long* address, size_t bytes, size_t alignment, unsigned long long wanted,
                        unsigned long long flags) {
  (void)alignment, (void)flags;
  if (getenv("FAKE_DRIVER_RESERVES_NOTHING") != NULL) return not_supported;
  *address = (unsigned long long)reserve_at((void*)wanted, bytes);
  return *address != 0 ? success : out_of_memory;
}

int cuMemAddressFree(unsigned long long address, size_t bytes) { return munmap((void*)address, bytes); }

int cuThreadExchangeStreamCaptureMode(int* mode) {
  *mode = 0;
  return success;
}

const struct fake_driver fake_driver = {map, reserve, give_out, queries};
