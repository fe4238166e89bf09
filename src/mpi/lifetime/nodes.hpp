// Does the job run on one node or on several? The launcher's environment says it; asking the library is a collective
// operation.
#pragma once

namespace gapless::mpi {

/// False where the launcher says nothing.
bool is_job_on_one_node() noexcept;
/// False where the launcher says nothing.
bool is_job_on_several_nodes() noexcept;

}  // namespace gapless::mpi
