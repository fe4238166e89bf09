// The program's MPI library, as a table of function pointers.
#pragma once

#include "mpi/table/abi.hpp"
#include "mpi/table/variant.hpp"

namespace gapless::mpi {

/// One pointer per function that the header declares; null where the library at hand lacks it (older than the header).
struct Native {
#define GAPLESS_NATIVE_MEMBER(name) GAPLESS_IF_DECLARED(name, decltype(&MPI_##name) name = nullptr;)
#define GAPLESS_NATIVE_intercepted(name) GAPLESS_NATIVE_MEMBER(name)
#define GAPLESS_NATIVE_guarded(name) GAPLESS_NATIVE_MEMBER(name)
#define GAPLESS_NATIVE_waiting(name) GAPLESS_NATIVE_MEMBER(name)
#define GAPLESS_NATIVE_endpoints(name) GAPLESS_NATIVE_MEMBER(name)
#define GAPLESS_NATIVE_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_NATIVE_##mark(name)
#include "mpi/table/functions.def"
#define GAPLESS_USED(name, need) GAPLESS_NATIVE_MEMBER(name)
#include "mpi/table/used_functions.def"
#undef GAPLESS_NATIVE_MEMBER
#undef GAPLESS_NATIVE_intercepted
#undef GAPLESS_NATIVE_guarded
#undef GAPLESS_NATIVE_waiting
#undef GAPLESS_NATIVE_endpoints
#undef GAPLESS_NATIVE_passed

  /// The library's own word on whether it takes GPU pointers (MPIX_Query_cuda_support); null if it has no such
  /// function.
  int (*query_cuda_support)() = nullptr;
  /// The same in MPICH and its kin (MPIX_GPU_query_support): a kind of GPU, and where the answer goes.
  int (*query_gpu_support)(int, int*) = nullptr;
  /// Whether the ranks of a communicator are threads, in MPICH (MPIX_Comm_test_threadcomm).
  int (*test_threads_communicator)(MPI_Comm, int*) = nullptr;
};

extern Native native;

/// Fills `native`. Null on success, else the sentence why this library cannot be served.
const char* load_native(gapless_find_symbol find, void* context) noexcept;

}  // namespace gapless::mpi
