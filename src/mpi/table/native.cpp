// PMPI_ names first: tools that define MPI_ functions are called by the shim, never from in here.
#include "mpi/table/native.hpp"

#include <cstdio>

#include "mpi/table/unweighted.hpp"

namespace gapless::mpi {

Native native;
const int* unweighted = nullptr;
#if defined(GAPLESS_VARIANT_OPENMPI)
OpenMpiData open_mpi_data;
#endif

namespace {

constexpr bool required = true;
constexpr bool optional = false;

struct Finder {
  gapless_find_symbol find;
  void* context;
  const char* missing = nullptr;

  void* symbol(const char* prefix, const char* name) const noexcept {
    char full_name[80];
    std::snprintf(full_name, sizeof full_name, "%s%s", prefix, name);
    return find(full_name, context);
  }

  template <class Function>
  void load(Function& function, const char* name, bool need) noexcept {
    void* address = symbol("PMPI_", name);
    if (address == nullptr) address = symbol("MPI_", name);
    function = reinterpret_cast<Function>(address);
    if (address == nullptr && need == required) missing = name;
  }
};

}  // namespace

const char* load_native(gapless_find_symbol find, void* context) noexcept {
  Finder finder{find, context};
#define GAPLESS_LOAD(name, need) GAPLESS_IF_DECLARED(name, finder.load(native.name, #name, need);)
#define GAPLESS_LOAD_intercepted(name) GAPLESS_LOAD(name, optional)
#define GAPLESS_LOAD_guarded(name) GAPLESS_LOAD(name, optional)
#define GAPLESS_LOAD_waiting(name) GAPLESS_LOAD(name, optional)
#define GAPLESS_LOAD_endpoints(name) GAPLESS_LOAD(name, optional)
#define GAPLESS_LOAD_passed(name)
#define GAPLESS_FUNCTION(name, mark, since, roles) GAPLESS_LOAD_##mark(name)
#include "mpi/table/functions.def"
#define GAPLESS_USED(name, need) GAPLESS_LOAD(name, need)
#define GAPLESS_USED_OF_TABLE(name) \
  if (native.name == nullptr) finder.missing = #name;
#include "mpi/table/used_functions.def"
  native.query_cuda_support = reinterpret_cast<int (*)()>(find("MPIX_Query_cuda_support", context));
  native.query_gpu_support = reinterpret_cast<int (*)(int, int*)>(find("MPIX_GPU_query_support", context));
  native.test_threads_communicator =
      reinterpret_cast<int (*)(MPI_Comm, int*)>(find("PMPIX_Comm_test_threadcomm", context));
#if defined(MPI_UNWEIGHTED)
  unweighted = MPI_UNWEIGHTED;
#else
  if (const void* variable = find("MPI_UNWEIGHTED", context)) unweighted = *static_cast<const int* const*>(variable);
#endif
#if defined(GAPLESS_VARIANT_OPENMPI)
#define GAPLESS_ROW(name)                    \
  open_mpi_data.name = find(#name, context); \
  if (open_mpi_data.name == nullptr) finder.missing = #name;
  GAPLESS_OPENMPI_DATA(GAPLESS_ROW)
#undef GAPLESS_ROW
#endif
  if (finder.missing == nullptr) return nullptr;
  static char why[160];
  std::snprintf(why, sizeof why, "the MPI library has no MPI_%s", finder.missing);
  return why;
}

}  // namespace gapless::mpi
