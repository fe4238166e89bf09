/* A libcuda.so.1 without a GPU. It answers what the memory of a pointer is, and maps memory as the real one does: by
   calling the C library. Set FAKE_DRIVER_RESERVES_NOTHING to have it map only what a test tells it to,
   FAKE_DRIVER_KNOWS_NO_RANGES to have it be an old one, FAKE_DRIVER_IS_NOT_INITIALISED to have it refuse answers. */
#include "fake_driver.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { success = 0, invalid_value = 1, out_of_memory = 2, not_initialised = 3, not_supported = 801 };
enum {
  attribute_memory_type = 2,
  attribute_is_managed = 8,
  attribute_device_ordinal = 9,
  attribute_is_legacy_ipc_capable = 10,
  attribute_range_start = 11,
  attribute_range_size = 12
};
enum { type_device = 2 };
enum { most_memories = 64 };

static struct fake_memory memories[most_memories];
static int memory_count;
static long query_count;
static int is_initialised;

static const struct fake_memory unknown = {0};

static const struct fake_memory* memory_of(unsigned long long pointer) {
  for (int i = 0; i < memory_count; ++i) {
    if (pointer - (unsigned long long)memories[i].address < memories[i].bytes) return &memories[i];
  }
  return &unknown;
}

static void add(struct fake_memory memory) { memories[memory_count++] = memory; }

static void give_out(void* address, size_t bytes) {
  add((struct fake_memory){.address = address, .bytes = bytes, .type = type_device});
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

static void release(void* address, size_t bytes) {
  for (int i = 0; i < memory_count; ++i) {
    if (memories[i].address == address) memories[i] = memories[--memory_count];
  }
  munmap(address, bytes);
}

static void control(void) {
  const int no_file = -1;
  ioctl(no_file, 0, NULL);
}

static void initialise(void) {
  control();
  is_initialised = 1;
}

static long queries(void) { return query_count; }

/* False for those that drivers before CUDA 11 refuse. */
static int write_attribute(int attribute, const struct fake_memory* memory, void* value) {
  switch (attribute) {
    case attribute_memory_type:
      *(int*)value = memory->type;
      return 1;
    case attribute_is_managed:
      *(int*)value = 0;
      return 1;
    case attribute_device_ordinal:
      *(int*)value = memory->device;
      return 1;
  }
  if (getenv("FAKE_DRIVER_KNOWS_NO_RANGES") != NULL) return 0;
  switch (attribute) {
    case attribute_is_legacy_ipc_capable:
      *(int*)value = memory->bytes != 0 && memory->reservation == NULL;
      return 1;
    case attribute_range_start:
      *(const void**)value = memory->reservation != NULL ? memory->reservation : memory->address;
      return 1;
    case attribute_range_size:
      *(size_t*)value = memory->reservation != NULL ? memory->reservation_bytes : memory->bytes;
      return 1;
  }
  return 0;
}

int cuPointerGetAttributes(unsigned count, int* attributes, void** values, unsigned long long pointer) {
  ++query_count;
  if (!is_initialised && getenv("FAKE_DRIVER_IS_NOT_INITIALISED") != NULL) return not_initialised;
  for (unsigned i = 0; i < count; ++i) {
    if (!write_attribute(attributes[i], memory_of(pointer), values[i])) return invalid_value;
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

const struct fake_driver fake_driver = {map, reserve, give_out, add, release, control, initialise, queries};
