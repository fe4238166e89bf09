#include "mpi/lifetime/nodes.hpp"

#include <cstdlib>
#include <cstring>
#include <optional>

namespace gapless::mpi {
namespace {

std::optional<bool> says_several_nodes() noexcept {
  struct Launcher {
    const char *here, *everywhere;  ///< how many processes
  };
  // Of Open MPI, Hydra (MPICH, Intel MPI), MVAPICH and Cray's PALS.
  constexpr Launcher launchers[] = {{"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
                                    {"MPI_LOCALNRANKS", "PMI_SIZE"},
                                    {"MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"},
                                    {"PMI_LOCAL_SIZE", "PMI_SIZE"}};
  for (const Launcher& launcher : launchers) {
    const char* const here = std::getenv(launcher.here);
    const char* const everywhere = std::getenv(launcher.everywhere);
    if (here != nullptr && everywhere != nullptr) return std::strcmp(here, everywhere) != 0;
  }
  // Slurm and Flux may have started another launcher, so they are asked last.
  for (const char* const name : {"SLURM_STEP_NUM_NODES", "FLUX_JOB_NNODES"}) {
    if (const char* const nodes = std::getenv(name)) return std::strcmp(nodes, "1") != 0;
  }
  return std::nullopt;
}

std::optional<bool> several_nodes() noexcept {
  static const std::optional<bool> answer = says_several_nodes();
  return answer;
}

}  // namespace

bool is_job_on_several_nodes() noexcept { return several_nodes().value_or(false); }

bool is_job_on_one_node() noexcept { return !several_nodes().value_or(true); }

}  // namespace gapless::mpi
