"""An installation works on its own: the command finds its modules and libraries, and C programs find the headers."""

import os
import shutil
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


CORE_PROGRAM = (
    "#include <gapless/gapless.h>\n#include <stdio.h>\nint main(void) { return puts(gapless_version()) < 0; }\n"
)


def prints_the_version(program):
    done = subprocess.run([program], capture_output=True, text=True)
    return (done.returncode, done.stdout) == (0, "0.1.0\n")


def test_a_c_program_is_compiled_and_linked_against_it(prefix, tmp_path):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(CORE_PROGRAM)
    flags = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lgapless-core", f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run(["cc", source, "-o", program, *flags], check=True)
    assert prints_the_version(program)


def flags_of_pkg_config(prefix, name):
    settings = os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    asked = ["pkg-config", "--cflags", "--libs", "--define-prefix", name]
    return subprocess.run(asked, capture_output=True, text=True, check=True, env=settings).stdout.split()


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_names_the_flags(prefix, tmp_path):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(CORE_PROGRAM)
    subprocess.run(["cc", source, "-o", program, *flags_of_pkg_config(prefix, "gapless-core")], check=True)
    assert prints_the_version(program)
    assert "-lgapless" in flags_of_pkg_config(prefix, "gapless")


PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES C)
find_package(gapless 0.1 REQUIRED)
add_executable(core core.c)
target_link_libraries(core PRIVATE gapless::core)
if(WITH_MPI)
  add_executable(endpoints endpoints.c)
  target_link_libraries(endpoints PRIVATE gapless::gapless)
endif()
"""
ENDPOINTS_PROGRAM = """
#include <mpi.h>
#include <gapless/endpoints.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int level, size;
    MPI_Comm rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPIX_Comm_create_endpoints(MPI_COMM_SELF, 1, MPI_INFO_NULL, &rank);
    MPI_Comm_size(rank, &size);
    printf("%d endpoint\\n", size);
    MPI_Comm_free(&rank);
    return MPI_Finalize();
}
"""
MPI = os.environ.get("MPICH_PREFIX") or os.environ.get("OPENMPI_PREFIX")


def test_cmake_finds_the_package(prefix, tmp_path):
    """An installation that has been moved is found where it stands."""
    moved = tmp_path / "elsewhere"
    shutil.copytree(prefix, moved, symlinks=True)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "core.c").write_text(CORE_PROGRAM)
    (tmp_path / "endpoints.c").write_text(ENDPOINTS_PROGRAM)
    compiler = [f"-DCMAKE_C_COMPILER={MPI}/bin/mpicc", "-DWITH_MPI=ON"] if MPI else []
    build = tmp_path / "build"
    cmake = os.environ["CMAKE_COMMAND"]
    for command in (
        [cmake, "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={moved}", *compiler],
        [cmake, "--build", build],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert prints_the_version(build / "core")
    if MPI:
        done = subprocess.run([build / "endpoints"], capture_output=True, text=True)
        assert done.stdout == "1 endpoint\n", done.stderr
