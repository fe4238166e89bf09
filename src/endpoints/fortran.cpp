#include "endpoints/fortran.hpp"

#include <exception>
#include <vector>

#include "endpoints/communicators/creation.hpp"
#include "endpoints/communicators/query.hpp"
#include "endpoints/communicators/static_world.hpp"
#include "mpi/table/native.hpp"

namespace gapless::mpi::endpoints::fortran {
namespace {

// MPICH's handles are Fortran's; others convert them by functions, of names that differ.
#if defined(GAPLESS_VARIANT_MPICH)
MPI_Comm communicator_of(int handle) noexcept { return MPI_Comm_f2c(handle); }
MPI_Info info_of(int handle) noexcept { return MPI_Info_f2c(handle); }
int fortran_number_of(MPI_Comm handle) noexcept { return MPI_Comm_c2f(handle); }
#elif defined(GAPLESS_VARIANT_ABI)
MPI_Comm communicator_of(int handle) noexcept { return native.Comm_fromint(handle); }
MPI_Info info_of(int handle) noexcept { return native.Info_fromint(handle); }
int fortran_number_of(MPI_Comm handle) noexcept { return native.Comm_toint(handle); }
#else
MPI_Comm communicator_of(int handle) noexcept { return native.Comm_f2c(handle); }
MPI_Info info_of(int handle) noexcept { return native.Info_f2c(handle); }
int fortran_number_of(MPI_Comm handle) noexcept { return native.Comm_c2f(handle); }
#endif

void give(int* error, int code) noexcept {
  if (error != nullptr) *error = code;
}

}  // namespace

void create(const int* parent, const int* my_count, const int* info, int* handles, int* error) noexcept {
  std::vector<MPI_Comm> made;
  try {
    made.resize(static_cast<std::size_t>(*my_count < 0 ? 0 : *my_count) + 1, MPI_COMM_NULL);
  } catch (const std::exception&) {
    return give(error, MPI_ERR_NO_MEM);
  }
  const int code = endpoints::create(communicator_of(*parent), *my_count, info_of(*info), made.data());
  for (int i = 0; i < *my_count && code == MPI_SUCCESS; ++i)
    handles[i] = fortran_number_of(made[static_cast<std::size_t>(i)]);
  give(error, code);
}

void query(const int* parent, int* count, int* error) noexcept {
  int useful = 1;
  give(error, endpoints::query(communicator_of(*parent), &useful));
  *count = useful;
}

void init(const int* count, const int* requested, int* provided, int* error) noexcept {
  int level = MPI_THREAD_SINGLE;
  give(error, init_endpoints(nullptr, nullptr, *count, *requested, &level));
  *provided = level;
}

void attach(const int* id, int* error) noexcept { give(error, endpoints::attach(*id)); }

}  // namespace gapless::mpi::endpoints::fortran
