"""The environment of jobs that have more ranks than the machine has cores: a rank that waits gives way to others.

Everything else is as the MPI libraries have it by themselves, without a network: to look for networks takes Open MPI a
second of each start. Open MPI 4 reads the one name of the mapping, and Open MPI 5 the other.

Open MPI 5 keeps its jobs' files in a directory that ends with this process: it names them by process id, and refuses to
start where a killed job of that id has left its own. A program that no launcher has started leaves a segment of 16 MiB,
with gapless and without, so segments have a directory of that kind, too.
"""

import os
import tempfile

_SHARED = "/dev/shm"
_jobs = tempfile.TemporaryDirectory(prefix="gapless-jobs-")
_segments = tempfile.TemporaryDirectory(prefix="gapless-jobs-", dir=_SHARED if os.access(_SHARED, os.W_OK) else None)
OWN_JOBS = {"PRTE_MCA_prte_tmpdir_base": _jobs.name, "OMPI_MCA_btl_sm_backing_directory": _segments.name}
ENVIRONMENT = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "10",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "^ofi",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    **OWN_JOBS,
}
