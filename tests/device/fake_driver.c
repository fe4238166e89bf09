/* A libcuda.so.1 without a GPU. It answers what the memory of a pointer is. Set FAKE_DRIVER_KNOWS_NO_RANGES to have it
   be an old one. */
#include "fake_driver.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { success = 0, invalid_value = 1, not_initialised = 3 };
enum {
  attribute_memory_type = 2,
  attribute_is_managed = 8,
  attribute_device_ordinal = 9,
  attribute_is_legacy_ipc_capable = 10,
  attribute_range_start = 11,
  attribute_range_size = 12
};
enum { most_memories = 64 };

static struct fake_memory memories[most_memories];
static int memory_count;
static long query_count;
static int is_initialised = 1;
static int failure;

static const struct fake_memory unknown = {0};

static const struct fake_memory* memory_of(unsigned long long pointer) {
  for (int i = 0; i < memory_count; ++i) {
    if (pointer - (unsigned long long)memories[i].address < memories[i].bytes) return &memories[i];
  }
  return &unknown;
}

static void add(struct fake_memory memory) { memories[memory_count++] = memory; }

static void* reserve(size_t bytes) {
  void* const reserved = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return reserved == MAP_FAILED ? NULL : reserved;
}

static void forget(void* address) {
  for (int i = 0; i < memory_count; ++i) {
    if (memories[i].address == address) memories[i] = memories[--memory_count];
  }
}

static void initialise(int yes) { is_initialised = yes; }

static void fail(int error) { failure = error; }

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
  if (!is_initialised) return not_initialised;
  if (failure != success) return failure;
  for (unsigned i = 0; i < count; ++i) {
    if (!write_attribute(attributes[i], memory_of(pointer), values[i])) return invalid_value;
  }
  return success;
}

const struct fake_driver fake_driver = {reserve, add, forget, initialise, fail, queries};
