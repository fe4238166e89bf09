"""Runs the gapless command as a user does, and lends tests a directory of libraries of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.append(str(ROOT / "tests" / "support"))  # oversubscribed.py

from oversubscribed import OWN_JOBS  # noqa: E402  (found through the line above)

os.environ.update(OWN_JOBS)  # of every job that a test begins

PREFIXES = {kind: os.environ.get(f"{kind.upper()}_PREFIX", "") for kind in ("mpich", "openmpi")}
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
HELLO = "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); return MPI_Finalize(); }\n"


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def gapless():
    """gapless(*words, **environment) -> CompletedProcess; an environment value of None removes the variable."""

    def call(*words, **changes):
        settings = {**os.environ, **{name: value for name, value in changes.items() if value is not None}}
        for name, value in changes.items():
            if value is None:
                settings.pop(name, None)
        command = [sys.executable, str(ROOT / "bin" / "gapless"), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, env=settings, timeout=120)

    return call


@pytest.fixture
def hello(tmp_path):
    """hello(kind, compiler) -> path of a program that begins and ends MPI."""

    def make(kind: str, compiler: str) -> Path:
        source, program = tmp_path / "hello.c", tmp_path / "hello"
        source.write_text(HELLO)
        subprocess.run([f"{PREFIXES[kind]}/bin/{compiler}", source, "-o", program], check=True)
        return program

    return make


@pytest.fixture
def library_folder(tmp_path):
    """library_folder(name) -> a new directory with a libgapless.so that does nothing."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run(["cc", "-shared", "-o", folder / "libgapless.so", "-x", "c", "/dev/null"], check=True)
        return folder

    return make


@pytest.fixture
def libraries(library_folder) -> Path:
    """A directory with a library that does nothing, so that what is passed on can be seen without a build."""
    return library_folder("libraries")


@pytest.fixture
def program(tmp_path):
    """program(name, shell_text) -> path of an executable script."""

    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    return make


def is_mistake(done, status: int) -> bool:
    """One readable line on stderr, nothing on stdout, the status expected."""
    return (
        done.returncode == status
        and done.stdout == ""
        and done.stderr.startswith("gapless: ")
        and done.stderr.count("\n") == 1
    )
