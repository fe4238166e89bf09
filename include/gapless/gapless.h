/* gapless: MPI's derived datatypes without MPI.
 *
 * For programs that keep their own communication and want noncontiguous data packed at the speed of contiguous copies,
 * on the host or a GPU. A type says which bytes of memory are meant and in which order (MPI 5.0, chapter 5,
 * "Datatypes"); packing moves any byte range of that order to or from a contiguous buffer.
 *
 * Library:  libgapless-core, which needs no MPI:
 *           cc app.c -IPREFIX/include -LPREFIX/lib -lgapless-core -Wl,-rpath,PREFIX/lib
 *
 * Units:    sizes, extents and true bounds are bytes; strides and displacements are bytes where the name says so, else
 *           elements of the child.
 *
 * Errors:   every function that can fail returns a gapless_status, and leaves its results untouched unless that is
 *           GAPLESS_SUCCESS; gapless_last_error() then says what was wrong. Nothing ends the process, and nothing is
 *           printed but lines on stderr about wrong environment variables and a CUDA plugin that is missing.
 *
 * Threads:  every function may be called from any thread at any time. Types are immutable and reference counted.
 *
 * Streams:  `stream` is a cudaStream_t, NULL the legacy default stream. Work on GPU memory is issued to it and nothing
 *           waits for it; the stream may be capturing a CUDA graph. Work on host memory is done when the call returns.
 */
#ifndef GAPLESS_GAPLESS_H
#define GAPLESS_GAPLESS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GAPLESS_API __attribute__((visibility("default")))
#else
#define GAPLESS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GAPLESS_VERSION_MAJOR 0
#define GAPLESS_VERSION_MINOR 1
#define GAPLESS_VERSION_PATCH 0

typedef enum gapless_status {
  GAPLESS_SUCCESS = 0,
  GAPLESS_ERROR_ARGUMENT = 1,      /* null pointer, negative count, or an argument no MPI constructor accepts */
  GAPLESS_ERROR_OVERFLOW = 2,      /* a size, bound or displacement does not fit in 63 bits */
  GAPLESS_ERROR_PARSE = 3,         /* the text is not a type */
  GAPLESS_ERROR_RANGE = 4,         /* not 0 <= begin <= end <= size * count */
  GAPLESS_ERROR_MEMORY_KIND = 5,   /* GPU memory on one side and ordinary host memory on the other */
  GAPLESS_ERROR_OUT_OF_MEMORY = 6, /* of the host or the GPU */
  GAPLESS_ERROR_UNSUPPORTED = 7,   /* right, but this build or machine cannot do it */
  GAPLESS_ERROR_DEVICE = 8,        /* the GPU's runtime refused */
  GAPLESS_ERROR_INTERNAL = 9       /* a fault of gapless: please tell its maintainers */
} gapless_status;

/* What the status means, in one line; never null, also for numbers that are no status. Valid for ever. */
GAPLESS_API const char* gapless_error_string(int status);

/* What was wrong in the last call that failed on this thread, in one line; "" before the first failure. Valid until
 * this thread's next failure. */
GAPLESS_API const char* gapless_last_error(void);

/* The library's version, "major.minor.patch". Compare with the GAPLESS_VERSION_* a program was compiled with. */
GAPLESS_API const char* gapless_version(void);

/* ---- Types ----
 *
 * Constructors follow MPI's of the same name (MPI 5.0, 5.1.2 to 5.1.4; pictures and type maps are there). The caller
 * owns the result and ends it with gapless_type_free; children may be freed at once. Lists of `count` entries may be
 * null when count is 0. Errors: ARGUMENT, OVERFLOW, OUT_OF_MEMORY.
 */
typedef struct gapless_type gapless_type;

/* A basic type: `size` contiguous bytes, repetitions `extent` bytes apart; 0 <= size <= extent. A double is (8, 8). */
GAPLESS_API gapless_status gapless_type_named(int64_t size, int64_t extent, gapless_type** result);

/* MPI_Type_contiguous */
GAPLESS_API gapless_status gapless_type_contiguous(int64_t count, const gapless_type* child, gapless_type** result);

/* MPI_Type_vector: `count` blocks of `block_length` children, `stride` children apart. */
GAPLESS_API gapless_status gapless_type_vector(int64_t count, int64_t block_length, int64_t stride,
                                               const gapless_type* child, gapless_type** result);

/* MPI_Type_create_hvector: the stride in bytes. */
GAPLESS_API gapless_status gapless_type_hvector(int64_t count, int64_t block_length, int64_t stride_bytes,
                                                const gapless_type* child, gapless_type** result);

/* MPI_Type_indexed: block i holds block_lengths[i] children, displacements[i] children from the origin. */
GAPLESS_API gapless_status gapless_type_indexed(int64_t count, const int64_t* block_lengths,
                                                const int64_t* displacements, const gapless_type* child,
                                                gapless_type** result);

/* MPI_Type_create_hindexed: displacements in bytes. */
GAPLESS_API gapless_status gapless_type_hindexed(int64_t count, const int64_t* block_lengths,
                                                 const int64_t* displacements_bytes, const gapless_type* child,
                                                 gapless_type** result);

/* MPI_Type_create_indexed_block: every block holds block_length children. */
GAPLESS_API gapless_status gapless_type_indexed_block(int64_t count, int64_t block_length, const int64_t* displacements,
                                                      const gapless_type* child, gapless_type** result);

/* MPI_Type_create_hindexed_block: displacements in bytes. */
GAPLESS_API gapless_status gapless_type_hindexed_block(int64_t count, int64_t block_length,
                                                       const int64_t* displacements_bytes, const gapless_type* child,
                                                       gapless_type** result);

/* MPI_Type_create_struct: field i holds block_lengths[i] of children[i], displacements_bytes[i] bytes from the origin.
 * No padding is added at the end: where the program's compiler pads, resize the struct to its sizeof. */
GAPLESS_API gapless_status gapless_type_struct(int64_t count, const int64_t* block_lengths,
                                               const int64_t* displacements_bytes, const gapless_type* const* children,
                                               gapless_type** result);

typedef enum gapless_order { GAPLESS_ORDER_C = 0, GAPLESS_ORDER_FORTRAN = 1 } gapless_order;

/* MPI_Type_create_subarray: the box of subsizes[] elements that begins at starts[] in an array of sizes[] elements,
 * each list `dimensions` >= 1 long; order is a gapless_order. Its extent is the whole array's. A subsize of 0, which
 * MPI refuses, makes a type without bytes. */
GAPLESS_API gapless_status gapless_type_subarray(int dimensions, const int64_t* sizes, const int64_t* subsizes,
                                                 const int64_t* starts, int order, const gapless_type* child,
                                                 gapless_type** result);

typedef enum gapless_distribution {
  GAPLESS_DISTRIBUTE_NONE = 0,
  GAPLESS_DISTRIBUTE_BLOCK = 1,
  GAPLESS_DISTRIBUTE_CYCLIC = 2
} gapless_distribution;

/* MPI_DISTRIBUTE_DFLT_DARG */
#define GAPLESS_DISTRIBUTE_DEFAULT INT64_C(-1)

/* MPI_Type_create_darray: what process `rank` of a grid of process_sizes[] (process_count in all) holds of an array of
 * global_sizes[] elements, each list `dimensions` >= 1 long; distributions[] are gapless_distributions. */
GAPLESS_API gapless_status gapless_type_darray(int64_t process_count, int64_t rank, int dimensions,
                                               const int64_t* global_sizes, const int* distributions,
                                               const int64_t* distribution_arguments, const int64_t* process_sizes,
                                               int order, const gapless_type* child, gapless_type** result);

/* MPI_Type_create_resized: the same bytes, repetitions `extent` bytes apart (any sign). */
GAPLESS_API gapless_status gapless_type_resized(const gapless_type* child, int64_t lower_bound, int64_t extent,
                                                gapless_type** result);

/* The type that a text such as "vector(1024, 1, 4, int)" or "subarray([64,64,64], [1,62,62], [0,1,1], c, double)"
 * names: lower-case constructor and MPI names, lists in brackets. On any failure one line that says why is also
 * written to `error`, at most `error_capacity` bytes with the closing zero; on PARSE the line names the column and what
 * was expected there, on OVERFLOW the column. `error` may be null.
 */
GAPLESS_API gapless_status gapless_type_parse(const char* text, gapless_type** result, char* error,
                                              size_t error_capacity);

/* One more owner; each owner calls gapless_type_free once. Errors: ARGUMENT (null). */
GAPLESS_API gapless_status gapless_type_retain(gapless_type* type);

/* Ends one ownership; the last one frees the type. Null is allowed and does nothing. */
GAPLESS_API void gapless_type_free(gapless_type* type);

/* ---- Questions about a type ----
 *
 * Errors: ARGUMENT, and OUT_OF_MEMORY for facts, traffic and descriptions.
 */

/* Packed bytes of one repetition (MPI_Type_size). */
GAPLESS_API gapless_status gapless_type_size(const gapless_type* type, int64_t* size);

/* Where a repetition begins and how far apart they are, in bytes (MPI_Type_get_extent). */
GAPLESS_API gapless_status gapless_type_extent(const gapless_type* type, int64_t* lower_bound, int64_t* extent);

/* The span from the first to the last byte that is named, in bytes (MPI_Type_get_true_extent). */
GAPLESS_API gapless_status gapless_type_true_extent(const gapless_type* type, int64_t* true_lower_bound,
                                                    int64_t* true_extent);

/* What choices are made from. Costs time in proportion to the longest list in the type. */
typedef struct gapless_facts {
  int64_t block_count;    /* contiguous runs of one repetition */
  int64_t shortest_block; /* bytes */
  int64_t longest_block;  /* bytes */
  int64_t alignment;      /* largest power of two, at most 16, that divides every block length and offset difference */
  int64_t memory_bytes;   /* of its lists and parts, shared ones included; 0 for a plain block */
  int injective;          /* 1 only if no byte is named twice: what unpacking needs to be well defined */
} gapless_facts;
GAPLESS_API gapless_status gapless_type_facts(const gapless_type* type, gapless_facts* facts);

/* What moving `count` repetitions costs at least, for memory that begins on a 64-byte boundary. */
typedef struct gapless_traffic {
  int64_t packed_bytes;  /* size * count */
  int64_t lines_touched; /* distinct 64-byte lines; exact up to 65536 blocks, beyond that estimated from those */
} gapless_traffic;
/* Errors: also OVERFLOW. */
GAPLESS_API gapless_status gapless_type_traffic(const gapless_type* type, int64_t count, gapless_traffic* traffic);

/* Writes one readable line about the canonical form, at most `capacity` bytes with the closing zero. *length (may be
 * null) gets the whole line's length without the zero, so a line was cut when *length >= capacity. buffer may be null
 * when capacity is 0. */
GAPLESS_API gapless_status gapless_type_describe(const gapless_type* type, char* buffer, size_t capacity,
                                                 size_t* length);

/* *equal is 1 if both have the same canonical form: the same bytes in the same order, however they were constructed.
 * Bounds are not compared: they matter from count 2 on. Never 1 for different ones; may be 0 for equal irregular types
 * of more than 16384 blocks. */
GAPLESS_API gapless_status gapless_type_equal(const gapless_type* a, const gapless_type* b, int* equal);

/* ---- Packing ----
 *
 * The packed stream of (type, count) is size * count bytes long, in type map order (MPI 5.0, 5.2 "Pack and Unpack",
 * without MPI's freedom to add a header: it is exactly the data). `memory` is the origin that displacements count from,
 * as MPI's buffer argument, and `packed` is where byte `begin` of the stream lies, of any alignment; the bytes
 * [begin, end) are moved. Memory and packed must not overlap. Either may be null only when begin == end.
 *
 * Where the bytes are decides who moves them:
 * - No GPU memory on either side: the host engine, before the call returns; `stream` is not looked at. Page-locked
 *   memory counts as host memory here.
 * - GPU memory, also managed, on at least one side: a kernel or copy in `stream`, which must belong to that GPU. The
 *   other side must be GPU, managed or page-locked memory, because asynchronous copies of ordinary host memory are not
 *   in stream order: else MEMORY_KIND. Buffers must stay until the stream has passed the work; the type need not.
 * All bytes that a type names must be memory of one kind, and of one GPU.
 *
 * Errors: ARGUMENT, OVERFLOW (of size * count or an offset), RANGE, MEMORY_KIND, OUT_OF_MEMORY, UNSUPPORTED (no GPU
 * support in this process, or memory of two GPUs), DEVICE.
 */
GAPLESS_API gapless_status gapless_pack(const gapless_type* type, int64_t count, const void* memory, int64_t begin,
                                        int64_t end, void* packed, void* stream);

/* Writes only bytes that [begin, end) names. Of a byte that is named twice, what the stream has last stays; finding
 * that out costs a GPU its parallelism. */
GAPLESS_API gapless_status gapless_unpack(const gapless_type* type, int64_t count, void* memory, int64_t begin,
                                          int64_t end, const void* packed, void* stream);

typedef enum gapless_direction { GAPLESS_PACK = 0, GAPLESS_UNPACK = 1 } gapless_direction;

typedef struct gapless_job {
  const gapless_type* type;
  int64_t count;
  void* memory;
  int64_t begin;
  int64_t end;
  void* packed;
  int direction; /* a gapless_direction */
} gapless_job;

/* Many packs and unpacks in one call, such as all faces of a halo: the GPU engine gets them together. Jobs must not
 * overlap each other's results; host and GPU jobs may be mixed, but all GPU jobs need the same GPU. No job is started
 * unless all are right; the text of gapless_last_error names the first that is not. */
GAPLESS_API gapless_status gapless_pack_batch(const gapless_job* jobs, size_t job_count, void* stream);

/* From one type's bytes to another's with no packed buffer: byte k of the source's stream to byte k of the
 * destination's. Both streams must be equally long (else ARGUMENT), the memory must not overlap. Where the bytes are
 * decides who moves them, as above; on a GPU it is one kernel in `stream`, which may be captured into a graph.
 * Memory of two GPUs: the kernel runs on the source's, to which `stream` must belong, and writes to the other one's;
 * UNSUPPORTED where the machine does not let it. The access is enabled once for each pair of GPUs: a program that ends
 * it by cudaDeviceDisablePeerAccess enables it again before it copies between these two, or the kernel faults. */
GAPLESS_API gapless_status gapless_copy(const gapless_type* source_type, int64_t source_count,
                                        const void* source_memory, const gapless_type* destination_type,
                                        int64_t destination_count, void* destination_memory, void* stream);

#ifdef __cplusplus
}
#endif

#endif
