"""Parallel HDF5, as Debian compiles it for its two MPIs: the same bytes in the file with gapless as without.

Hyperslabs are written and read collectively and independently (hyperslabs.c), which gives the library derived datatypes
of memory and of the file. Run with GAPLESS_TEST_PROGRAMS_LONG=1, for the MPIs that HDF5 is installed for.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SHIM = os.environ["GAPLESS_TEST_SHIM"]
SOURCE = Path(__file__).with_name("hyperslabs.c")
MPIS = [mpi for mpi in ("mpich", "openmpi") if shutil.which(f"h5pcc.{mpi}") and shutil.which(f"mpiexec.{mpi}")]
pytestmark = [
    pytest.mark.skipif(not os.environ.get("GAPLESS_TEST_PROGRAMS_LONG"), reason="make test-programs runs it"),
    pytest.mark.skipif(not MPIS, reason="no parallel HDF5: neither libhdf5-mpich-dev nor libhdf5-openmpi-dev"),
]
ENVIRONMENT = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "10",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@pytest.fixture(scope="module", params=MPIS)
def program(request, tmp_path_factory):
    """The MPI's name and the program, compiled for it."""
    compiled = tmp_path_factory.mktemp(request.param) / "hyperslabs"
    words = [f"h5pcc.{request.param}", "-shlib", "-std=gnu99", "-Wall", "-Werror", SOURCE, "-o", compiled]
    done = subprocess.run(words, cwd=compiled.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return request.param, compiled


def run(program, ranks, how, path, **settings):
    """What the ranks say, the file's bytes, and the error stream."""
    mpi, compiled = program
    words = [f"mpiexec.{mpi}", "-n", str(ranks), "env", *(f"{name}={value}" for name, value in settings.items())]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GAPLESS", "LD_"))}
    done = subprocess.run(
        [*words, compiled, path, how], capture_output=True, text=True, env=environment | ENVIRONMENT, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(done.stdout.splitlines()), path.read_bytes(), done.stderr


@pytest.mark.parametrize("how", ["collective", "independent"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_bytes_of_the_file(program, ranks, how, tmp_path):
    right = [f"rank {rank}: failed 0, wrong in the file 0, wrong in the message 0" for rank in range(ranks)]
    plain, plain_bytes, _ = run(program, ranks, how, tmp_path / "plain.h5")
    settings = {"LD_PRELOAD": SHIM, "GAPLESS_STATISTICS": 1, "GAPLESS_SCHEME": "packed"}
    gapless, gapless_bytes, said = run(program, ranks, how, tmp_path / "gapless.h5", **settings)
    assert plain == right
    assert gapless == right
    assert gapless_bytes == plain_bytes
    assert len(plain_bytes) > ranks * 96 * 80 * 4
    packed = [int(number) for number in re.findall(r"packed (\d+) messages", said)]
    assert len(packed) == ranks and min(packed) >= 1
