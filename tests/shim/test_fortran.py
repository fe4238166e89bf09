"""Fortran programs, whose calls come through wrappers that call MPI_X in one library and PMPI_X in another."""

import os
import re

import pytest

from conftest import PROGRAMS, SHIM, counts, run

PROGRAMS_AT_HAND = os.environ["GAPLESS_TEST_FORTRAN"].split(",")


@pytest.mark.parametrize("program", PROGRAMS_AT_HAND)
def test_fortran(program, shim, tmp_path):
    done = run(PROGRAMS / program, LD_PRELOAD=shim, GAPLESS_TEST_COUNTS=tmp_path / "counts")
    assert done.stdout.strip() == "right"
    made = counts(tmp_path / "counts")
    assert made.items() >= {"Send": 1, "Sendrecv": 1, "Allreduce": 1}.items()


@pytest.mark.parametrize("program", PROGRAMS_AT_HAND)
@pytest.mark.parametrize("gapless", [False, True])
def test_derived_datatypes(program, gapless, tmp_path):
    """Nonblocking, persistent, collective and file calls of two processes, with gapless packing what it can."""
    mpi = program.rpartition("-")[2]
    forms = PROGRAMS / program.replace("fortran", "forms")
    with_gapless = {"LD_PRELOAD": SHIM, "GAPLESS_STATISTICS": 1, "GAPLESS_SCHEME": "packed"} if gapless else {}
    settings = [f"{name}={value}" for name, value in with_gapless.items()]
    done = run(f"mpiexec.{mpi}", "-n", 2, "env", *settings, forms, tmp_path / "file")
    assert done.stdout.strip() == "right"
    packed = [int(number) for number in re.findall(r"packed (\d+) messages", done.stderr)]
    # 60 rounds each of two messages sent and received, and of a collective.
    assert not gapless or (len(packed) == 2 and min(packed) >= 300)
