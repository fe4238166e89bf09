"""Profiling tools see each call of the program once, whichever way round they and gapless are preloaded."""

import shutil

import pytest

from conftest import ABIS, PROGRAMS, counts, run


@pytest.mark.parametrize("variant", ["counting", "missing"])
@pytest.mark.parametrize("order", ["tool first", "gapless first"])
@pytest.mark.parametrize("abi", ABIS)
def test_both_see_every_call(abi, order, variant, shim, tmp_path):
    tool = PROGRAMS / f"tool-{abi}.so"
    if variant == "missing":
        (shim.parent / f"libgapless-{abi}.so").unlink()
    preload = f"{tool} {shim}" if order == "tool first" else f"{shim} {tool}"
    files = {"GAPLESS_TEST_COUNTS": tmp_path / "variant", "GAPLESS_TEST_TOOL": tmp_path / "tool"}
    done = run(PROGRAMS / f"program-{abi}", LD_PRELOAD=preload, **files)
    assert done.stdout == "right on 1\n"
    # program.c calls MPI_Send three times and PMPI_Send once, which is not for tools to see.
    assert counts(tmp_path / "tool") == {"Send": 3, "Sendrecv": 1}
    if variant == "counting":
        assert counts(tmp_path / "variant").items() >= {"Send": 4, "Sendrecv": 1, "Finalize": 1}.items()


@pytest.mark.parametrize("abi", ABIS)
def test_of_two_copies_of_gapless_the_first_one_sees_every_call(abi, shim, tmp_path):
    copy = tmp_path / "copy" / shim.name
    copy.parent.mkdir()
    shutil.copy(shim, copy)  # with no variant beside it, so it would leave its calls to the library
    files = {"GAPLESS_TEST_COUNTS": tmp_path / "variant"}
    done = run(PROGRAMS / f"program-{abi}", LD_PRELOAD=f"{shim} {copy}", **files)
    assert (done.stdout, done.stderr) == ("right on 1\n", "")
    assert counts(tmp_path / "variant").items() >= {"Send": 4, "Sendrecv": 1, "Finalize": 1}.items()
