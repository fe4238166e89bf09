"""Fortran programs, whose calls come through wrappers that call MPI_X in one library and PMPI_X in another."""

import os

import pytest

from conftest import PROGRAMS, counts, run


@pytest.mark.parametrize("program", os.environ["GAPLESS_TEST_FORTRAN"].split(","))
def test_fortran(program, shim, tmp_path):
    done = run(PROGRAMS / program, LD_PRELOAD=shim, GAPLESS_TEST_COUNTS=tmp_path / "counts")
    assert done.stdout.strip() == "right"
    made = counts(tmp_path / "counts")
    assert made.items() >= {"Send": 1, "Sendrecv": 1, "Allreduce": 1}.items()
