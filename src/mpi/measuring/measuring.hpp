// What `gapless calibrate` measures with. Its processes are Python without an MPI module: a variant has the library's
// functions and its handles already, so it serves wherever gapless does, without a compiler or a program per library.
//
// Exported with C linkage; one thread, between MPI_Init and MPI_Finalize.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// A message: packed bytes in blocks of `block` bytes, each row of `row_blocks` of them (or of all, if there are fewer)
/// as far apart as they are long. One block that has all bytes is contiguous.
struct gapless_measured_shape {
  std::int64_t bytes, block, row_blocks;
};

/// Rank and size of MPI_COMM_WORLD. An MPI error code.
int gapless_measure_world(int* rank, int* size);
/// MPI_Bcast of bytes in MPI_COMM_WORLD. An MPI error code.
int gapless_measure_broadcast(void* bytes, int count, int root);
/// Bytes of memory that a message reaches over, from its buffer's address.
std::int64_t gapless_measure_reach(const gapless_measured_shape* shape);
/// Nanoseconds of one message that goes from rank `first` to rank `second` and back, `round_trips` times, halved: every
/// other rank returns at once. `memory` is in host or GPU memory. `scheme` is one of the names of GAPLESS_SCHEME; what
/// `native` takes is the library's own function. 0: the scheme does not carry this message. Negative: an MPI error.
double gapless_measure_message(const char* scheme, const gapless_measured_shape* shape, void* memory, int first,
                               int second, int round_trips);
/// Nanoseconds of one MPI_Pack, or MPI_Unpack, within this process, in the mean of `times`; `scheme` is native or
/// packed, and the memory the host's. 0 and negative numbers as above.
double gapless_measure_pack(const char* scheme, const gapless_measured_shape* shape, void* memory, void* packed,
                            int unpacks, int times);
}
