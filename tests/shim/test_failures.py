"""Whatever is wrong with the installation, a program that runs without gapless runs with it, and is told once."""

import shutil
import subprocess
import sys

import pytest

from conftest import ABIS, PREFIXES, PROGRAMS, counts, run

UNSUPPORTED_IN_MPICH = 44


def runs_natively(abi, shim, **environment) -> str:
    """Runs program.c with a shim that cannot or must not be active; returns what was said."""
    done = run(PROGRAMS / f"program-{abi}", LD_PRELOAD=shim, **environment)
    assert done.stdout == "right on 1\n"
    return done.stderr


def is_one_warning(text, *words) -> bool:
    lines = text.splitlines()
    return len(lines) == 1 and lines[0].startswith("gapless: off") and all(word in lines[0] for word in words)


@pytest.mark.parametrize("abi", ABIS)
def test_switched_off(abi, shim, tmp_path):
    assert runs_natively(abi, shim, GAPLESS="0", GAPLESS_TEST_COUNTS=tmp_path / "counts") == ""
    assert counts(tmp_path / "counts") == {}


@pytest.mark.parametrize("abi", ABIS)
def test_switched_off_says_so_when_asked(abi, shim):
    assert is_one_warning(runs_natively(abi, shim, GAPLESS="0", GAPLESS_VERBOSE="1"), "GAPLESS=0", f"ABI {abi}")


SERIAL_MPI = """
int MPI_Init(int *count, char ***arguments) { return 0; }
int MPI_Comm_size(int communicator, int *size) { *size = communicator; return 0; }
int MPI_Finalize(void) { return 0; }
"""
USES_SERIAL_MPI = """
#include <stdio.h>
int MPI_Init(int *, char ***), MPI_Comm_size(int, int *), MPI_Finalize(void);
int run(void) {
  int size = 0;
  int code = MPI_Init(0, 0) + MPI_Comm_size(7, &size) + MPI_Finalize();
  printf("%d %d\\n", code, size);
  return code;
}
"""
OPENS = """
#include <dlfcn.h>
int main(int count, char **words) { return ((int (*)(void))dlsym(dlopen(words[1], RTLD_LAZY | RTLD_LOCAL), "run"))(); }
"""


@pytest.mark.parametrize("is_opened", [False, True])
def test_programs_that_bring_a_serial_mpi_of_their_own_use_it(shim, tmp_path, is_opened):
    def built(name, text, *options):
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run(["gcc", tmp_path / f"{name}.c", "-o", tmp_path / name, *options], check=True)
        return tmp_path / name

    serial = built("libserial.so", SERIAL_MPI, "-shared", "-fPIC", "-w")
    linked = [serial, f"-Wl,-rpath,{tmp_path}"]
    if is_opened:
        command = [built("opens", OPENS), built("uses.so", USES_SERIAL_MPI, "-shared", "-fPIC", *linked)]
    else:
        command = [built("uses", USES_SERIAL_MPI + "int main(void) { return run(); }", *linked)]
    for changes in ({}, {"GAPLESS": "0"}):
        done = run(*command, LD_PRELOAD=shim, **changes)
        assert (done.stdout, done.stderr) == ("0 7\n", "")


CREATES_ENDPOINTS = """
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
int main(void) {
  int (*create)(MPI_Comm, int, MPI_Info, MPI_Comm *) = dlsym(dlopen(NULL, RTLD_LAZY), "MPIX_Comm_create_endpoints");
  MPI_Comm made;
  MPI_Init(NULL, NULL);
  for (int times = 0; times < 2; ++times)
    printf("%d\\n", create(MPI_COMM_WORLD, 1, MPI_INFO_NULL, &made) == MPI_ERR_UNSUPPORTED_OPERATION);
  return MPI_Finalize();
}
"""


@pytest.mark.parametrize("abi", ABIS)
def test_endpoints_where_it_is_switched_off_are_refused_and_told_of_once(abi, shim, tmp_path):
    source, program = tmp_path / "creates.c", tmp_path / "creates"
    source.write_text(CREATES_ENDPOINTS)
    compiler = PREFIXES[abi] / "bin" / ("mpicc_abi" if abi == "abi" else "mpicc")
    subprocess.run([compiler, source, "-o", program, "-ldl"], check=True)
    done = run(program, LD_PRELOAD=shim, GAPLESS="0")
    assert done.stdout == "1\n1\n"
    assert done.stderr.count("\n") == 1 and "gapless is off: switched off by GAPLESS=0" in done.stderr


@pytest.mark.parametrize("abi", ABIS)
def test_variant_missing(abi, shim_alone):
    assert is_one_warning(runs_natively(abi, shim_alone), f"libgapless-{abi}.so", "No such file")


@pytest.mark.parametrize("abi", ABIS)
def test_variant_is_no_library(abi, shim_alone):
    (shim_alone.parent / f"libgapless-{abi}.so").write_text("not a library")
    assert is_one_warning(runs_natively(abi, shim_alone), f"libgapless-{abi}.so")


@pytest.mark.parametrize("abi", ABIS)
def test_variant_has_no_entry_point(abi, shim_alone):
    broken = shim_alone.parent / f"libgapless-{abi}.so"
    subprocess.run(["cc", "-shared", "-o", broken, "-x", "c", "/dev/null"], check=True)
    assert is_one_warning(runs_natively(abi, shim_alone), "gapless_variant_open")


@pytest.mark.parametrize("abi", ABIS)
def test_variant_refuses(abi, shim):
    said = runs_natively(abi, shim, GAPLESS_TEST_REFUSE="it is not in the mood")
    assert is_one_warning(said, "it is not in the mood")


def test_report_says_why_it_is_disabled(shim_alone):
    report = (
        "import ctypes, sys; ctypes.CDLL(sys.argv[1]); shim = ctypes.CDLL(sys.argv[2]); "
        "text = ctypes.create_string_buffer(4096); shim.gapless_shim_report(text, 4096); print(text.value.decode())"
    )
    done = run(sys.executable, "-c", report, PROGRAMS / f"plugin-{ABIS[0]}.so", shim_alone)
    assert "state=disabled" in done.stdout and "No such file" in done.stdout
    done = run(sys.executable, "-c", report, shim_alone, shim_alone)
    assert "state=disabled" in done.stdout and "libmpi=\n" in done.stdout


def test_no_mpi_library_at_all(shim):
    done = run(PROGRAMS / "no_library", LD_LIBRARY_PATH=shim.parent)
    error = UNSUPPORTED_IN_MPICH
    assert done.stdout == f"sendrecv {error}\nsend {error}\nsend {error}\n"
    assert done.stderr.startswith("gapless: an MPI function was called, but no MPI library is loaded (")
    assert done.stderr.count("\n") == 1


def test_library_of_no_known_abi_that_lacks_a_function(shim, tmp_path):
    done = run(PROGRAMS / "strange", LD_LIBRARY_PATH=shim.parent, GAPLESS_TEST_COUNTS=tmp_path / "counts")
    assert done.stdout == f"sendrecv 0\nsend {UNSUPPORTED_IN_MPICH}\nsend {UNSUPPORTED_IN_MPICH}\n"
    assert counts(tmp_path / "counts") == {"Sendrecv": 1}  # taken for MPICH's ABI


def test_a_file_named_like_a_library_but_mapped_as_data(shim, tmp_path):
    """The large-count question reads mapped files named libmpi*; one that is only being read must do no harm."""
    for source in (PROGRAMS / f"plugin-{ABIS[0]}.so", sys.executable, "/etc/passwd"):
        data = shutil.copy(source, tmp_path / "libmpi_data.so")
        script = (
            "import ctypes, mmap, sys; file = open(sys.argv[1], 'rb'); "
            "data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE); "
            "print(ctypes.CDLL(None).dlsym(None, b'MPI_Send_c'))"
        )
        assert run(sys.executable, "-c", script, data, LD_PRELOAD=shim).stdout == "0\n"
