"""Unmodified programs of every kind reach the variant, and get the results they get without it."""

import sys

import pytest

from conftest import ABIS, PREFIXES, PROGRAMS, counts, run

# What one process of program.c calls, outermost.
CALLS = {
    "Init": 1,
    "Sendrecv": 1,
    "Send": 4,
    "Pack": 1,
    "Allreduce": 1,
    "Win_create": 1,
    "Win_lock": 1,
    "Get_accumulate": 1,
    "Win_unlock": 1,
    "Win_free": 1,
    "Finalize": 1,
}
LARGE_COUNT = {"mpich": {"Send_c": 1}, "abi": {"Send_c": 1}, "openmpi": {}}


def expected(abi, processes=1):
    return {name: count * processes for name, count in (CALLS | LARGE_COUNT[abi]).items()}


@pytest.mark.parametrize("binding", ["lazy", "now"])
@pytest.mark.parametrize("abi", ABIS)
def test_preloaded(abi, binding, shim, tmp_path):
    early = {"LD_BIND_NOW": "1"} if binding == "now" else {}
    done = run(PROGRAMS / f"program-{abi}", LD_PRELOAD=shim, GAPLESS_TEST_COUNTS=tmp_path / "counts", **early)
    assert done.stdout == "right on 1\n"
    assert done.stderr == ""
    assert counts(tmp_path / "counts") == expected(abi)


@pytest.mark.parametrize("abi", ABIS)
def test_linked(abi, shim, tmp_path):
    done = run(PROGRAMS / f"linked-{abi}", LD_LIBRARY_PATH=shim.parent, GAPLESS_TEST_COUNTS=tmp_path / "counts")
    assert (done.stdout, done.stderr) == ("right on 1\n", "")
    assert counts(tmp_path / "counts") == expected(abi)


@pytest.mark.parametrize("abi", ABIS)
def test_under_a_launcher_that_inherits_the_preload(abi, shim, tmp_path):
    done = run(
        PREFIXES[abi] / "bin" / "mpiexec",
        "-n",
        "2",
        PROGRAMS / f"program-{abi}",
        LD_PRELOAD=shim,
        GAPLESS_TEST_COUNTS=tmp_path / "counts",
    )
    assert done.stdout == "right on 2\n"
    assert counts(tmp_path / "counts") == expected(abi, processes=2)


@pytest.mark.parametrize("abi", ABIS)
def test_preloaded_by_a_relative_path_from_a_folder_that_is_left(abi, shim, tmp_path):
    calls = "plugin.start(); plugin.message(); plugin.finish()"
    plugin = PROGRAMS / f"plugin-{abi}.so"
    script = f"import ctypes, os; os.chdir('/'); plugin = ctypes.CDLL('{plugin}'); {calls}"
    preload = 'cd "$1"; LD_PRELOAD=./libgapless.so exec "$2" -c "$3"'
    done = run(
        *("/bin/sh", "-c", preload, "sh", shim.parent, sys.executable, script), GAPLESS_TEST_COUNTS=tmp_path / "counts"
    )
    assert done.stderr == ""
    assert counts(tmp_path / "counts") == {"Init": 1, "Send": 1, "Finalize": 1}


@pytest.mark.parametrize("abi", ABIS)
def test_library_loaded_privately_and_called_by_jumps(abi, shim, tmp_path):
    done = run(
        PROGRAMS / "host", PROGRAMS / f"plugin-{abi}.so", LD_PRELOAD=shim, GAPLESS_TEST_COUNTS=tmp_path / "counts"
    )
    assert done.stdout.endswith("start 0\nmessage 0\nfinish 0\n")
    assert counts(tmp_path / "counts") == {"Init": 1, "Send": 1, "Finalize": 1}


@pytest.mark.parametrize("plugin", ["plugin", "plugin-now"])
@pytest.mark.parametrize("abi", ABIS)
def test_functions_exist_exactly_where_the_library_has_them(abi, plugin, shim):
    plugin = PROGRAMS / f"{plugin}-{abi}.so"
    without = run(PROGRAMS / "host", plugin)
    assert run(PROGRAMS / "host", plugin, LD_PRELOAD=shim).stdout == without.stdout
    assert ("large count 1" in without.stdout) == (abi != "openmpi")


@pytest.mark.parametrize("binding", ["lazy", "now"])
@pytest.mark.parametrize("abi", ABIS)
def test_functions_exist_for_the_program_itself_exactly_where_the_library_has_them(abi, binding, shim):
    program = PROGRAMS / f"asks-{abi}"
    early = {"LD_BIND_NOW": "1"} if binding == "now" else {}
    without = run(program, **early)
    assert without.stdout == f"large count {int(abi != 'openmpi')}\n"
    done = run(program, LD_PRELOAD=shim, **early)
    assert (done.stdout, done.stderr) == (without.stdout, "")


@pytest.mark.parametrize("plugin", ["plugin", "plugin-now"])
@pytest.mark.parametrize("abi", [abi for abi in ABIS if abi != "openmpi"])
def test_libraries_loaded_at_start_refer_to_functions_in_silence(abi, plugin, shim):
    """The dynamic linker complains of references to indirect functions that it meets too early; there must be none."""
    done = run(PROGRAMS / "host", LD_PRELOAD=f"{shim} {PROGRAMS / f'{plugin}-{abi}.so'}")
    assert "large count 1" in done.stdout and done.stderr == ""


MPI4PY = """
import array
from mpi4py import MPI
world = MPI.COMM_WORLD
sent, received = array.array('i', [1, 2, 3]), array.array('i', [0, 0, 0])
world.Sendrecv(sent, world.rank, recvbuf=received, source=world.rank)
assert received == sent
assert world.allreduce(1) == world.size
"""


@pytest.mark.parametrize("binding", ["lazy", "now"])
@pytest.mark.parametrize("abi", [abi for abi in ABIS if abi != "abi"])
def test_mpi4py(abi, binding, shim, tmp_path):
    python = PREFIXES[abi] / "bin" / "python"
    early = {"LD_BIND_NOW": "1"} if binding == "now" else {}
    done = run(python, "-c", MPI4PY, LD_PRELOAD=shim, GAPLESS_TEST_COUNTS=tmp_path / "counts", **early)
    assert done.stderr == ""
    made = counts(tmp_path / "counts")
    assert made["Sendrecv" if abi == "openmpi" else "Sendrecv_c"] == 1
    assert made["Init_thread"] == made["Finalize"] == 1


@pytest.mark.parametrize("abi", ABIS)
def test_says_what_it_found_when_asked(abi, shim):
    done = run(PROGRAMS / f"program-{abi}", LD_PRELOAD=shim, GAPLESS_VERBOSE=1)
    assert done.stdout == "right on 1\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("gapless: active, MPI library ")
    assert f", ABI {abi}, variant {shim.parent}/libgapless-{abi}.so" in line


def test_processes_without_mpi_load_nothing_more(shim, tmp_path):
    show = "print(open('/proc/self/maps').read())"
    done = run(sys.executable, "-c", show, LD_PRELOAD=shim, GAPLESS_TEST_COUNTS=tmp_path / "counts")
    assert "libgapless.so" in done.stdout
    assert "libgapless-" not in done.stdout
    assert done.stderr == ""
    listing = run("/bin/ls", "/", LD_PRELOAD=shim)
    assert listing.stdout == run("/bin/ls", "/").stdout and listing.stderr == ""
    assert not (tmp_path / "counts").exists()


@pytest.mark.parametrize("abi", ABIS)
def test_report_before_the_first_call(abi, shim):
    report = (
        "import ctypes, sys; ctypes.CDLL(sys.argv[1]); shim = ctypes.CDLL(sys.argv[2]); "
        "text = ctypes.create_string_buffer(4096); length = shim.gapless_shim_report(text, 4096); "
        "assert length == len(text.value); print(text.value.decode(), end='')"
    )
    done = run(sys.executable, "-c", report, PROGRAMS / f"plugin-{abi}.so", shim)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert found["state"] == "active" and found["why"] == ""
    assert found["abi"] == abi
    assert found["variant"] == f"{shim.parent}/libgapless-{abi}.so"
    assert found["libmpi"].startswith(f"{PREFIXES[abi]}/lib/libmpi")
