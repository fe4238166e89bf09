"""mpi4py-fft's own tests under the two bundled MPIs: they pass with gapless as without.

Their global transposes are MPI_Alltoallw of subarrays. Run with GAPLESS_TEST_PROGRAMS_LONG=1. The package is compiled
from PyPI's source once for each MPI, against Debian's FFTW, and kept in the cache directory; where that fails the tests
are skipped and say so.
"""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from launching import PACKED, launch, packed_messages

CACHE = Path(os.environ["GAPLESS_TEST_CACHE"])
PREFIXES = {"mpich": os.environ["GAPLESS_TEST_MPICH"], "openmpi": os.environ["GAPLESS_TEST_OPENMPI"]}
VERSION = "2.0.6"
RANKS = 2
TIME_LIMIT = 240
pytestmark = pytest.mark.skipif(not os.environ.get("GAPLESS_TEST_PROGRAMS_LONG"), reason="make test-programs runs it")


def pip(python, *words):
    done = subprocess.run([python, "-m", "pip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mpi4py-fft {VERSION} cannot be installed: {(done.stdout + done.stderr)[-600:]}")


@pytest.fixture(scope="module", params=PREFIXES)
def suite(request):
    """The MPI's prefix, the folder of its mpi4py-fft, and the folder of the tests."""
    prefix = Path(PREFIXES[request.param])
    python = prefix / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {python}")
    folder = CACHE / request.param
    archive = folder / f"mpi4py_fft-{VERSION}.tar.gz"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        pip(python, "download", "-q", "-d", folder, "--no-deps", "--no-binary", "mpi4py-fft", f"mpi4py-fft=={VERSION}")
        # Into a folder of its own: the environments hold what their lists of requirements name.
        pip(python, "install", "-q", "--no-deps", "--upgrade", "--target", folder / "packages", archive)
        with tarfile.open(archive) as source:
            source.extractall(folder)
        (folder / "complete").touch()
    return prefix, folder / "packages", folder / f"mpi4py_fft-{VERSION}" / "tests"


def run(suite, module, **settings):
    """The exit status of the module's own tests, and the error stream."""
    prefix, packages, tests = suite
    words = [prefix / "bin" / "python", "-B", tests / f"{module}.py"]
    paths = {"PYTHONPATH": str(packages)}
    done = launch(prefix / "bin" / "mpiexec", RANKS, words, settings, TIME_LIMIT, environment=paths)
    return done.returncode, done.stderr


@pytest.mark.parametrize("module", ["test_pencil", "test_mpifft", "test_darray"])
def test_passes_with_gapless_as_without(suite, module):
    plain, said = run(suite, module)
    assert plain == 0, said[-3000:]
    gapless, said = run(suite, module, **PACKED)
    assert gapless == 0, said[-3000:]
    packed = packed_messages(said)
    assert len(packed) == RANKS and min(packed) >= 1, said[-3000:]
