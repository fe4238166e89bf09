"""`gapless info` on real MPI libraries and on programs that are none."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from conftest import is_mistake
from gapless import info

PREFIXES = {kind: os.environ.get(f"{kind.upper()}_PREFIX", "") for kind in ("mpich", "openmpi")}
HELLO = "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); return MPI_Finalize(); }\n"

LIBRARIES = [
    (kind, compiler, abi, name)
    for kind, compiler, abi, name in (
        ("mpich", "mpicc", "mpich", "MPICH"),
        ("mpich", "mpicc_abi", "abi", "MPICH"),
        ("openmpi", "mpicc", "openmpi", "Open MPI"),
    )
    if (Path(PREFIXES[kind]) / "bin" / compiler).is_file()
]
for_each_mpi = pytest.mark.parametrize("kind, compiler, abi, name", LIBRARIES)


def test_there_is_an_mpi_to_test_with():
    assert LIBRARIES, "set MPICH_PREFIX or OPENMPI_PREFIX"


def sections(done) -> dict:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_library_is_found_behind_the_link_that_the_linker_uses(tmp_path):
    library, folder, mpicc = tmp_path / "libmpi.so.40.30.4", tmp_path / "openmpi" / "lib", tmp_path / "mpicc"
    library.touch()
    folder.mkdir(parents=True)
    (folder / "libmpi.so").symlink_to(library)
    mpicc.write_text(f"#!/bin/sh\necho gcc -L{folder} -lmpi\n")
    mpicc.chmod(0o755)
    assert info.mpi_of_mpicc(str(mpicc)) == library


@for_each_mpi
def test_a_program_uses_the_library_it_was_linked_with(gapless, tmp_path, kind, compiler, abi, name):
    source, hello = tmp_path / "hello.c", tmp_path / "hello"
    source.write_text(HELLO)
    subprocess.run([f"{PREFIXES[kind]}/bin/{compiler}", source, "-o", hello], check=True)
    program = sections(gapless("info", "--json", hello))["program"]
    assert (program["ABI"], program["gapless"]) == (abi, "active")
    assert program["MPI"].startswith(name)
    assert Path(program["MPI library"]).resolve().is_relative_to(Path(PREFIXES[kind]).resolve())


@for_each_mpi
def test_without_a_program_the_mpis_on_path_are_reported(gapless, kind, compiler, abi, name):
    path = f"{PREFIXES[kind]}/bin:{os.environ['PATH']}"
    found = sections(gapless("info", "--json", PATH=path))
    assert found["mpicc"]["MPI"].startswith(name)
    assert found["mpi4py"]["MPI"].startswith(name)


def test_a_missing_library_is_said(gapless, tmp_path):
    found = sections(gapless("info", "--json", GAPLESS_LIBRARY_DIRECTORY=str(tmp_path)))
    assert found["gapless"]["preloaded library"] == "libgapless.so is not built"


@for_each_mpi
def test_when_switched_off_the_reason_is_said(gapless, kind, compiler, abi, name):
    path = f"{PREFIXES[kind]}/bin:{os.environ['PATH']}"
    found = sections(gapless("info", "--json", PATH=path, GAPLESS="0"))
    assert found["mpicc"]["gapless"].startswith("off: ")
    assert "GAPLESS=0" in found["mpicc"]["gapless"]


def test_an_mpi_library_that_cannot_be_loaded_is_a_problem_with_its_reason(tmp_path):
    (tmp_path / "libmpi.so.12").write_text("not a library")
    assert "libmpi.so.12" in info.library_rows(tmp_path / "libmpi.so.12")["problem"]


def test_without_any_mpi(gapless, tmp_path):
    found = sections(gapless("info", "--json", PATH=str(tmp_path)))
    assert found["mpicc"] == {"program": "mpicc is not on PATH"}


def test_a_program_without_mpi(gapless):
    program = sections(gapless("info", "--json", "/bin/ls"))["program"]
    assert program["MPI library"].startswith("none found")


def test_a_program_that_does_not_exist(gapless):
    assert is_mistake(gapless("info", "no-such-program"), 127)


def test_settings_are_shown_and_misspelt_ones_found(gapless):
    settings = sections(gapless("info", "--json", GAPLESS_SCHEME="packed", GAPLESS_SHEME="packed"))["environment"]
    assert settings["GAPLESS_SCHEME"] == "packed"
    assert "no such variable" in settings["GAPLESS_SHEME"]


def test_the_text_has_every_section(gapless):
    done = gapless("info", GAPLESS_VERBOSE="0")
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert titles == ["gapless", "GPU", "environment", "mpicc", "mpi4py"]
