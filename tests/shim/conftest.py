"""Lends tests the built shim, folders of libraries in every state of repair, and the programs to run with them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "src" / "mpi" / "table"))  # functions.py, which reads the table
sys.path.append(str(Path(__file__).parents[1] / "support"))

from oversubscribed import ENVIRONMENT  # noqa: E402  (found through the line above)

SHIM = Path(os.environ["GAPLESS_TEST_SHIM"])
PROGRAMS = Path(os.environ["GAPLESS_TEST_PROGRAMS"])
ABIS = os.environ["GAPLESS_TEST_ABIS"].split(",")
PREFIXES = {
    "mpich": Path(os.environ["MPICH_PREFIX"]),
    "abi": Path(os.environ["MPICH_PREFIX"]),
    "openmpi": Path(os.environ["OPENMPI_PREFIX"]),
}
# UCX complains on stderr where there is no network.
ANY_USER_AND_MACHINE = {**ENVIRONMENT, "OMPI_MCA_osc": "^ucx"}


def run(*command, status=0, **environment) -> subprocess.CompletedProcess:
    """Runs a command that must end with `status`."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("GAPLESS", "LD_"))}
    settings |= ANY_USER_AND_MACHINE | {name: str(value) for name, value in environment.items()}
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env=settings, timeout=120)
    assert done.returncode == status, f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def counts(path: Path) -> dict[str, int]:
    """What a variant or a tool counted: "name count" lines, of all processes together."""
    total: dict[str, int] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, count = line.split()
        total[name] = total.get(name, 0) + int(count)
    return total


@pytest.fixture
def shim_alone(tmp_path) -> Path:
    """libgapless.so with no variant beside it."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    return Path(shutil.copy(SHIM, folder / SHIM.name))


@pytest.fixture
def shim(shim_alone) -> Path:
    """libgapless.so with counting variants beside it."""
    for abi in ("mpich", "openmpi", "abi"):
        shutil.copy(PROGRAMS / "gapless-fake-variant.so", shim_alone.parent / f"libgapless-{abi}.so")
    return shim_alone
