/* A GPU for tests on machines without one: what tests call besides the plugin interface.
 *
 * Device memory is a range of addresses that the CPU may not touch: every stray access of the host faults, as with a
 * GPU. Copies and kernels wait in their stream until it is synchronised, so a forgotten synchronisation shows as wrong
 * data. Load the library by the path in GAPLESS_DEVICE_PLUGIN (from Python through ctypes); all users of a process
 * share it. With GAPLESS_TEST_SIMULATED_READABLE set, the CPU may touch device memory after all, as MPI libraries do
 * that read GPU memory. */
#ifndef GAPLESS_TESTS_SIMULATED_DEVICE_H
#define GAPLESS_TESTS_SIMULATED_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of simulated GPU 0 or 1, filled with 0xdb; NULL when there is none left. Like cudaMalloc and cudaFree, which
 * waits for all work. */
void* simulated_device_malloc(int device, size_t bytes);
void simulated_device_free(void* pointer);

/* Like cudaDeviceReset: waits for all work, frees all memory of the GPU and the page-locked memory allocated for it,
 * and gives it another context. */
void simulated_device_reset(int device);

/* Where another device of the machine reads and writes that memory; NULL when it is not all allocated. Waits for no
 * work. */
void* simulated_device_alias(const void* device_memory, size_t bytes);

/* Move bytes between host arrays and device memory, after waiting for all work, like cudaMemcpy. Return 0, or -1 when
 * the device memory named is not all allocated. */
int simulated_device_write(void* device_memory, const void* host, size_t bytes);
int simulated_device_read(void* host, const void* device_memory, size_t bytes);

/* What was done since the start or simulated_device_reset_counts: "launches", of them "launches_of_high_priority" of
 * the program's, "copies", "synchronisations", "allocations", "uploads" of descriptions, "table_uploads" of batches,
 * "default_stream_waits", "polls" (runs that were waited for), "locates", "flushes" of other devices' writes. -1 for
 * any other name. */
long simulated_device_count(const char* what);
void simulated_device_reset_counts(void);

/* Bytes of device and pinned memory that are allocated through the plugin or simulated_device_malloc. */
size_t simulated_device_bytes_in_use(void);

/* From now on, runs that are waited for take so much longer than they should with the engine "kernel", "ahead" or
 * "dma", by the simulation's own clock. Returns -1 for an unknown engine. */
int simulated_device_delay(const char* engine, long long nanoseconds);

/* Makes the operation "allocate", "upload", "stream", "copy", "run", "synchronize", "enable_peer", "export", "open"
 * (of other processes' memory), "lock" (of pages) or "flush" fail, after `successes` more successes, `failures` times
 * (-1: for ever). The environment variable GAPLESS_TEST_SIMULATED_FAIL does the same at start:
 * operation:successes:failures, several separated by commas. Returns -1 for an unknown operation. */
int simulated_device_fail(const char* operation, long successes, long failures);

#ifdef __cplusplus
}
#endif
#endif
