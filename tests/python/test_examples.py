"""The halo exchange example end to end: every halo point right with gapless, on each MPI, and gapless really in use."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BINARIES = Path(os.environ.get("BUILD_DIRECTORY", "")) / "bin"
LAUNCHERS = {
    "mpich": [os.environ.get("MPICH_PREFIX", "") + "/bin/mpiexec"],
    "abi": [os.environ.get("MPICH_PREFIX", "") + "/bin/mpiexec"],
    "openmpi": [os.environ.get("OPENMPI_PREFIX", "") + "/bin/mpirun", "--oversubscribe"],
}
KINDS = [kind for kind in LAUNCHERS if (BINARIES / f"halo3d-{kind}").is_file()]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


def test_there_is_an_example_to_run():
    assert KINDS, f"no halo3d program in {BINARIES}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "mode, ranks, size, radius",
    [
        *((mode, *box) for mode in ("sendrecv", "isend", "pack") for box in ((1, 12, 1), (2, 9, 3), (3, 8, 4))),
        ("persistent", 2, 9, 3),
        ("neighbor", 2, 9, 3),
        ("neighbor", 3, 8, 4),
    ],
)
def test_every_halo_point_is_right(gapless, kind, mode, ranks, size, radius):
    options = ["--size", size, "--radius", radius, "--iterations", 60, "--mode", mode]
    done = gapless(
        "run", "--statistics", *LAUNCHERS[kind], "-n", ranks, BINARIES / f"halo3d-{kind}", *options, **AS_ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified=yes wrong=0" in done.stdout
    ranks_said = re.findall(r"^gapless: rank \d+: (.*)$", done.stderr, re.MULTILINE)
    assert len(ranks_said) == ranks, done.stderr
    packed = [int(found[1]) if (found := re.search(r"packed (\d+) messages?", said)) else 0 for said in ranks_said]
    # Open MPI's own way is as good there.
    assert mode == "isend" or (kind, mode) == ("openmpi", "neighbor") or min(packed) > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [["--size", "1"], ["--radius", "0"], ["--mode", "nonsense"], ["--nonsense"], ["x"]])
def test_wrong_options_are_refused(kind, options):
    command = [*LAUNCHERS[kind], "-n", "1", str(BINARIES / f"halo3d-{kind}"), *options]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **AS_ROOT}, timeout=120)
    assert done.returncode != 0
    assert "usage: halo3d" in done.stderr


def test_the_demo(root):
    command = [sys.executable, root / "examples" / "demo.py", "--binaries", BINARIES, "--size", "8", "--ranks", "2"]
    done = subprocess.run([*command, "--iterations", "60", "--turns", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every halo point was right." in done.stdout
    assert done.stdout.count("of which packing") == len(KINDS) * (1 if "There is no GPU here" in done.stdout else 2)


def test_the_demo_without_programs(root, tmp_path):
    command = [sys.executable, root / "examples" / "demo.py", "--binaries", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "make" in done.stderr
