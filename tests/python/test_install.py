"""An installation works on its own: the command finds its modules and libraries, and C programs find the headers."""

import os
import subprocess

import pytest


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    command = [os.environ["CMAKE_COMMAND"], "--install", os.environ["BUILD_DIRECTORY"], "--prefix", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def installed(prefix, *words):
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("GAPLESS", "PYTHONPATH"))}
    return subprocess.run([prefix / "bin" / "gapless", *words], capture_output=True, text=True, env=settings, cwd="/")


def test_what_is_installed(prefix):
    names = {path.name for path in (prefix / "lib").iterdir()}
    assert {"libgapless.so", "libgapless-core.so"} <= names
    assert any(name in names for name in ("libgapless-mpich.so", "libgapless-openmpi.so", "libgapless-abi.so"))
    assert not any("simulated" in name or "test" in name for name in names)


def test_every_header_is_installed(prefix, root):
    """Those of Fortran, too."""
    headers = {path.name for path in (root / "include" / "gapless").iterdir()}
    assert {"gapless.h", "endpoints.h", "endpoints.fh", "endpoints.f90"} <= headers
    assert {path.name for path in (prefix / "include" / "gapless").iterdir()} == headers


def test_the_command_uses_the_installed_libraries(prefix):
    done = installed(prefix, "explain", "vector(3, 1, 2, int)")
    assert done.returncode == 0, done.stderr
    done = installed(prefix, "run", "sh", "-c", "echo $LD_PRELOAD")
    assert done.stdout.strip().endswith(str((prefix / "lib" / "libgapless.so").resolve()))


def test_benchmarks_need_a_checkout(prefix):
    done = installed(prefix, "bench", "--check")
    assert done.returncode == 1
    assert "checkout" in done.stderr


def test_a_c_program_is_compiled_and_linked_against_it(prefix, tmp_path):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(
        "#include <gapless/gapless.h>\n#include <stdio.h>\nint main(void) { return puts(gapless_version()) < 0; }\n"
    )
    flags = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lgapless-core", f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run(["cc", source, "-o", program, *flags], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0.1.0\n")
