"""Parallel HDF5, as Debian compiles it for its two MPIs: the same bytes in the file with gapless as without.

Hyperslabs are written and read collectively and independently (hyperslabs.c), which gives the library derived datatypes
of memory and of the file. Run with GAPLESS_TEST_PROGRAMS_LONG=1, for the MPIs that HDF5 is installed for.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from launching import PACKED, launch, packed_messages

SOURCE = Path(__file__).with_name("hyperslabs.c")
MPIS = [mpi for mpi in ("mpich", "openmpi") if shutil.which(f"h5pcc.{mpi}") and shutil.which(f"mpiexec.{mpi}")]
pytestmark = [
    pytest.mark.skipif(not os.environ.get("GAPLESS_TEST_PROGRAMS_LONG"), reason="make test-programs runs it"),
    pytest.mark.skipif(not MPIS, reason="no parallel HDF5: neither libhdf5-mpich-dev nor libhdf5-openmpi-dev"),
]


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
    done = launch(f"mpiexec.{mpi}", ranks, [compiled, path, how], settings, seconds=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(done.stdout.splitlines()), path.read_bytes(), done.stderr


@pytest.mark.parametrize("how", ["collective", "independent"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_bytes_of_the_file(program, ranks, how, tmp_path):
    right = [f"rank {rank}: failed 0, wrong in the file 0, wrong in the message 0" for rank in range(ranks)]
    plain, plain_bytes, _ = run(program, ranks, how, tmp_path / "plain.h5")
    gapless, gapless_bytes, said = run(program, ranks, how, tmp_path / "gapless.h5", **PACKED)
    assert plain == right
    assert gapless == right
    assert gapless_bytes == plain_bytes
    assert len(plain_bytes) > ranks * 96 * 80 * 4
    packed = packed_messages(said)
    assert len(packed) == ranks and min(packed) >= 1
