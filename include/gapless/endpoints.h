/* Endpoints: MPI ranks for threads, on any MPI library (Dinan et al., Enabling communication concurrency through
 * flexible MPI endpoints, IJHPCA 28(4), 2014). Include <mpi.h> first. The functions are in libgapless.so, which is
 * linked or preloaded; what an endpoints communicator serves, and what it refuses, stands in docs/endpoints.md.
 */
#ifndef GAPLESS_ENDPOINTS_H
#define GAPLESS_ENDPOINTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The result of MPI_Comm_compare for two handles of one endpoints communicator (section 4.1). */
#define MPIX_ALIASED 4747

/* Makes one communicator in which each process of `parent` has `my_num_ep` ranks, and gives a handle for each of them:
 * handles[i] is the calling process's i-th. Ranks are in the order of the parent's. Zero is allowed, with any
 * `handles`. Each handle behaves as the communicator of a process of its own. Collective over `parent`, called by one
 * thread of each process. Each handle is freed by MPI_Comm_free, by any thread; no two of them need be freed at once
 * (section 3.2).
 *
 * Keys of `info` are hints and none is known yet. Needs MPI_THREAD_MULTIPLE.
 * Errors, raised through the handler of `parent` on every process alike: MPI_ERR_ARG (a negative number; null `handles`
 * with a positive one), MPI_ERR_OTHER (a lower thread level; more endpoints than tags have room for), MPI_ERR_COMM (an
 * intercommunicator), MPI_ERR_UNSUPPORTED_OPERATION (an endpoint's handle as `parent`), and what the library raises
 * when it runs out of communicators. */
int MPIX_Comm_create_endpoints(MPI_Comm parent, int my_num_ep, MPI_Info info, MPI_Comm handles[]);

#ifdef __cplusplus
}
#endif

#endif
