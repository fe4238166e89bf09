"""The wheel that `make wheel` made: it needs no more than its name says, and works where there is no compiler."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

WHEELS = sorted(Path(os.environ.get("WHEEL_DIRECTORY", "dist")).glob("gapless-*.whl"))
pytestmark = pytest.mark.skipif(len(WHEELS) != 1, reason=f"`make wheel` makes one wheel; there are {len(WHEELS)}")

BINARIES = Path(os.environ.get("BUILD_DIRECTORY", "")) / "bin"
MPICH, OPENMPI = (os.environ.get(f"{kind}_PREFIX", "") for kind in ("MPICH", "OPENMPI"))
LAUNCHERS = {
    "mpich": [f"{MPICH}/bin/mpiexec"],
    "abi": [f"{MPICH}/bin/mpiexec"],
    "openmpi": [f"{OPENMPI}/bin/mpirun", "--oversubscribe"],
}
KINDS = [kind for kind in LAUNCHERS if (BINARIES / f"halo3d-{kind}").is_file()]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}

# What systems with the glibc of a tag have at least, as PEP 600 and the manylinux images have it.
CPP_LIBRARY = {(2, 28): {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}}
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so\.\d")
# Instructions that a processor may lack: those with a VEX or EVEX prefix, and the bit manipulation ones.
EXTENDED = re.compile(
    r"\s+([0-9a-f]+):\s+(v[a-z]\w+|k(?:mov|or|unpck)\w+|andn|bextr|bls\w+|mulx|pdep|pext|popcnt|s(?:ar|hl|hr)x|rorx)\b"
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(WHEELS[0]) as wheel:
        wheel.extractall(folder)
    return folder / "gapless"


@pytest.fixture(scope="module")
def libraries(unpacked) -> list[Path]:
    return sorted(unpacked.rglob("*.so*"))


@pytest.fixture(scope="module")
def bare_path(tmp_path_factory) -> str:
    """PATH of a machine without a compiler: the programs that `gapless info` asks, and no others."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "ldd").symlink_to("/usr/bin/ldd")
    return str(folder)


@pytest.fixture(scope="module")
def command(tmp_path_factory, bare_path):
    """command(*words) -> CompletedProcess of the gapless command of a new environment that has only the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("GAPLESS", "PYTHON", "LD_"))}
    settings |= {"PATH": f"{folder}/bin:{bare_path}", **AS_ROOT}
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, env=settings)
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", WHEELS[0]]
    subprocess.run(install, check=True, env=settings)

    def call(*words):
        line = [folder / "bin" / "gapless", *map(str, words)]
        return subprocess.run(line, capture_output=True, text=True, env=settings, cwd=folder, timeout=120)

    return call


def read(option: str, library: Path) -> str:
    command = ["readelf", "--wide", option, library]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout


def tag() -> tuple[int, int]:
    """The glibc that the name promises to run with."""
    match = re.search(r"-manylinux_(\d+)_(\d+)_x86_64\.whl$", WHEELS[0].name)
    assert match, WHEELS[0].name
    return int(match[1]), int(match[2])


def test_every_library_is_in_it(libraries):
    assert {"libgapless.so", "libgapless-core.so"} | {f"libgapless-{kind}.so" for kind in KINDS} <= {
        library.name for library in libraries
    }
    built = BINARIES.parent / "lib" / "libgapless-cuda.so"
    assert built.is_file() == ("libgapless-cuda.so" in {library.name for library in libraries})


def test_no_symbol_is_newer_than_the_name_says(libraries):
    limits = {"GLIBC": tag(), **CPP_LIBRARY[tag()]}
    for library in libraries:
        needed = read("--version-info", library).partition("Version needs section")[2]
        versions = re.findall(r"Name: ([A-Z]+)_([\d.]+)\s", needed)
        assert versions, library
        for family, version in versions:
            assert tuple(map(int, version.split("."))) <= limits[family], f"{library.name} needs {family}_{version}"


def test_it_needs_only_libraries_that_every_system_has(libraries):
    ours = {library.name for library in libraries}
    for library in libraries:
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", read("--dynamic", library))
        assert needed
        assert all(name in ours or SYSTEM_LIBRARIES.fullmatch(name) for name in needed), (library.name, needed)


def test_only_the_kernels_need_more_than_the_oldest_processors(libraries):
    """Kernels for newer processors are local to core, which asks the processor first; whatever has a name is for all.

    A function of a header that was compiled with the kernels, and was chosen by the linker for everyone, has a name.
    """
    for library in libraries:
        listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True)
        extended = sorted(int(address, 16) for address, _ in EXTENDED.findall(listing.stdout))
        assert bool(extended) == (library.name == "libgapless-core.so"), library.name
        symbols = re.findall(r": ([0-9a-f]+)\s+(\d+) I?FUNC\s+\w+\s+DEFAULT\s+\d+ (\S+)", read("--dyn-syms", library))
        assert symbols
        for value, size, name in symbols:
            begin = int(value, 16)
            assert not any(begin <= address < begin + int(size) for address in extended), name


def test_the_command_works_where_there_is_no_compiler(command):
    done = command("explain", "vector(3, 1, 2, int)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_info_finds_everything(command, kind):
    done = command("info", "--json", BINARIES / f"halo3d-{kind}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "site-packages/gapless/lib/libgapless.so" in found["gapless"]["preloaded library"]
    assert found["program"]["gapless"] == "active"
    assert f"site-packages/gapless/lib/libgapless-{kind}.so" in found["program"]["variant"]


@pytest.mark.parametrize("kind", KINDS)
def test_programs_run_with_it(command, kind):
    # The first uses of a datatype are the library's, so there have to be many.
    program = [BINARIES / f"halo3d-{kind}", "--size", 16, "--radius", 2, "--iterations", 200]
    done = command("run", "--statistics", *LAUNCHERS[kind], "-n", 2, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified=yes wrong=0" in done.stdout
    packed = [int(number) for number in re.findall(r"packed (\d+) messages?", done.stderr)]
    assert len(packed) == 2 and min(packed) > 0, done.stderr
