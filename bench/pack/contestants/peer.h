/* Another library that packs on the GPU, as a shared object: `pack_gpu --peer NAME=PATH`. It is verified and timed
 * beside everything else, in the same run. What it gets wrong is left out of the table and named on stderr.
 *
 * A type comes as text, MPI's constructors in lower case with lists in brackets:
 *   vector(1024, 1, 64, double)     hvector(16, 1, 4096, vector(8, 2, 4, float))     indexed([1,2], [0,8], byte)
 * Names used: byte short int float double; constructors: contiguous vector hvector indexed indexed_block struct
 * subarray resized.
 */
#ifndef GAPLESS_BENCH_PEER_H
#define GAPLESS_BENCH_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle for `count` repetitions of the type; null if this peer cannot do it. */
void* gapless_peer_open(const char* type, int64_t count);

/* Issues the packing of everything from `memory` to `packed` (or back, if `unpacks`) to the cudaStream_t; 0 if all is
 * well. May wait for the stream if the library cannot do otherwise: gapless_peer_waits() then returns 1. */
int gapless_peer_issue(void* handle, int unpacks, void* memory, void* packed, void* stream);
int gapless_peer_waits(void);

void gapless_peer_close(void* handle);

#ifdef __cplusplus
}
#endif

#endif
