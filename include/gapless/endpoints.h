/* Endpoints: MPI ranks for threads, on any MPI library (Dinan et al., Enabling communication concurrency through
 * flexible MPI endpoints, IJHPCA 28(4), 2014). The functions are in libgapless.so, which is linked before the MPI
 * library:
 *
 *   mpicc app.c -IPREFIX/include -LPREFIX/lib -Wl,--no-as-needed -lgapless -Wl,-rpath,PREFIX/lib
 *
 * What an endpoints communicator serves, and what it refuses, stands in docs/endpoints.md.
 *
 * Where gapless is off (GAPLESS=0, or its library for the program's MPI cannot be loaded) the functions do nothing and
 * return MPI_ERR_UNSUPPORTED_OPERATION, past every error handler. A program that may run so compares what they return
 * with MPI_SUCCESS, or the first use of a handle ends it.
 */
#ifndef GAPLESS_ENDPOINTS_H
#define GAPLESS_ENDPOINTS_H

#ifndef MPI_VERSION
#include <mpi.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The result of MPI_Comm_compare for two handles of one endpoints communicator (section 4.1). */
#define MPIX_ALIASED 4747

/* Makes one communicator in which each process of `parent` has `my_num_ep` ranks, and gives a handle for each of them:
 * handles[i] is the calling process's i-th. Ranks are in the order of the parent's. Zero is allowed, with any
 * `handles`. Each handle behaves as the communicator of a process of its own. Collective over `parent`, called by one
 * thread of each process; `parent` may be an endpoint's handle, and then each endpoint calls for itself. Each handle is
 * freed by MPI_Comm_free, by any thread; no two of them need be freed at once (section 3.2).
 *
 * `info` may say under the key "thread_level" how threads share each endpoint of the calling process, in MPI's own
 * words: "MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED" (one thread), "MPI_THREAD_SERIALIZED" (one at a time) or
 * "MPI_THREAD_MULTIPLE" (the default). It is a promise, may differ between processes, and does not lower what MPI
 * itself needs: MPI_THREAD_MULTIPLE. Other keys are left alone.
 *
 * Errors, raised through the handler of `parent` on every process alike: MPI_ERR_ARG (a negative number; null `handles`
 * with a positive one), MPI_ERR_INFO_VALUE (a thread level that is none), MPI_ERR_OTHER (MPI has a lower thread level;
 * more endpoints than tags have room for), MPI_ERR_COMM (an intercommunicator), MPI_ERR_NO_MEM (a process has no
 * communicators left for handles), and what the library raises when it runs out of them otherwise. */
int MPIX_Comm_create_endpoints(MPI_Comm parent, int my_num_ep, MPI_Info info, MPI_Comm handles[]);

/* How many endpoints on `parent` are of use to the calling process: as many as it has processor cores, shared with the
 * processes of `parent` on the same node that may run on the same cores; 1 at least. Processes may get different
 * numbers. Collective over `parent`, which is no endpoint's handle.
 * Errors: MPI_ERR_ARG (null `count`), MPI_ERR_COMM, MPI_ERR_UNSUPPORTED_OPERATION, as above. */
int MPIX_Query_endpoints(MPI_Comm parent, int* count);

/* Initialises MPI, with `count` ranks for each process in MPI_COMM_WORLD (section 3.1). Collective over all processes,
 * in the place of MPI_Init_thread. `count` may differ between processes and may be 0. A thread that has attached to an
 * endpoint sees the world of these ranks; one that has not sees processes, as without endpoints.
 *
 * Whatever `tl_requested` is, the library is asked for MPI_THREAD_MULTIPLE; `*tl_provided` is what it says.
 * MPI_Finalize, called once in each process when its threads no longer communicate, frees the endpoints. Errors are
 * returned, for no error handler can have been set: MPI_ERR_ARG (a negative number, or `tl_requested` is no thread
 * level, on every process alike; MPI is then initialised, without endpoints), MPI_ERR_OTHER (MPI is initialised
 * already; the library has no MPI_THREAD_MULTIPLE; too many endpoints). */
int MPIX_Init_endpoints(int* argc, char*** argv, int count, int tl_requested, int* tl_provided);

/* Binds the calling thread to endpoint `id` of its process (section 3.3.1), from 0 to the `count` of the process less
 * one. From here on MPI_COMM_WORLD and MPI_COMM_SELF mean, in this thread, the endpoint's world and the endpoint alone.
 * A thread is bound for its life; when it has ended, another may attach to the endpoint.
 * Errors, through the handler of the thread's MPI_COMM_WORLD: MPI_ERR_ARG (no such endpoint), MPI_ERR_OTHER (the thread
 * is attached already; the endpoint is another thread's; no MPIX_Init_endpoints). */
int MPIX_Endpoint_attach(int id);

#ifdef __cplusplus
}
#endif

#endif
