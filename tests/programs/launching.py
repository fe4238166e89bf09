"""How the tests run a program with gapless and without: on more ranks than cores, so waiting ranks must give way."""

import os
import re
import subprocess

SHIM = os.environ["GAPLESS_TEST_SHIM"]
# Open MPI 4 reads the one name of the mapping, and Open MPI 5 the other.
ENVIRONMENT = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "10",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
PACKED = {"LD_PRELOAD": SHIM, "GAPLESS_STATISTICS": 1, "GAPLESS_SCHEME": "packed"}


def launch(mpiexec, ranks, words, settings, seconds, environment=None, folder=None):
    """The completed process of so many ranks, to which the settings go. Nothing of gapless is inherited."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GAPLESS", "LD_"))}
    of_ranks = [f"{name}={value}" for name, value in settings.items()]
    return subprocess.run(
        [mpiexec, "-n", str(ranks), "env", *of_ranks, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=inherited | ENVIRONMENT | (environment or {}),
        timeout=seconds,
    )


def packed_messages(said):
    """How many messages each rank has packed, of what the ranks' statistics say."""
    return [int(number) for number in re.findall(r"packed (\d+) messages", said)]
