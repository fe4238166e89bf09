// More endpoints than cores give nothing, for each wants a thread that runs. Cores are shared by the processes of a
// node that the system may run on the same ones.
#include "endpoints/communicators/query.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "base/hash.hpp"
#include "endpoints/communicators/creation.hpp"
#include "endpoints/communicators/static_world.hpp"
#include "endpoints/errors.hpp"
#include "endpoints/inner.hpp"
#include "mpi/lifetime/errors.hpp"

namespace gapless::mpi::endpoints {
namespace {

constexpr const char* query_name = "MPIX_Query_endpoints";

struct Cores {
  std::uint64_t node = 0;
  cpu_set_t allowed{};
  bool is_asked = true;  ///< the process gave a place for the answer
};

Cores cores_of_this_process() noexcept {
  Cores mine;
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  mine.node = hash_of(name);
  // The process's own, as its first thread has them: the calling one may be bound to a single core.
  if (sched_getaffinity(getpid(), sizeof mine.allowed, &mine.allowed) == 0) return mine;
  // The system has more cores than the set has room for.
  const long cores = std::min<long>(sysconf(_SC_NPROCESSORS_ONLN), CPU_SETSIZE);
  for (long core = 0; core < cores; ++core) CPU_SET(static_cast<std::size_t>(core), &mine.allowed);
  return mine;
}

bool share_cores(const Cores& a, const Cores& b) noexcept {
  cpu_set_t both;
  CPU_AND(&both, &a.allowed, &b.allowed);
  return a.node == b.node && CPU_COUNT(&both) != 0;
}

}  // namespace

int query(MPI_Comm parent, int* count) noexcept {
  try {
    parent = meaning_of(parent);
    if (const int code = refuse_endpoint(parent, query_name); code != MPI_SUCCESS) return code;
    int is_inter = 0, processes = 0;
    if (const int code = inner.Comm_test_inter(parent, &is_inter); code != MPI_SUCCESS) return code;
    if (is_inter != 0) return raise_on_communicator(parent, MPI_ERR_COMM);
    inner.Comm_size(parent, &processes);
    Cores mine = cores_of_this_process();
    mine.is_asked = count != nullptr;
    std::vector<Cores> all(static_cast<std::size_t>(processes));
    const int code = inner.Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, parent);
    if (code != MPI_SUCCESS) return code;
    if (!std::all_of(all.begin(), all.end(), [](const Cores& cores) { return cores.is_asked; }))
      return raise_on_communicator(parent, code_with_text(MPI_ERR_ARG, query_name, "count is null in some process"));
    const auto sharers = std::count_if(all.begin(), all.end(), [&](const Cores& c) { return share_cores(mine, c); });
    *count = std::max(1, CPU_COUNT(&mine.allowed) / std::max(1, static_cast<int>(sharers)));
    return MPI_SUCCESS;
  } catch (const std::exception&) {
    return raise_on_communicator(parent, MPI_ERR_NO_MEM);
  }
}

}  // namespace gapless::mpi::endpoints
