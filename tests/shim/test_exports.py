"""What libgapless.so exports, exactly as the table says, and that a process without MPI pays nothing for having it."""

import os
import re
import subprocess

from functions import additions, extensions, fortran_additions, rows

from conftest import SHIM

FORBIDDEN = re.compile(r"P?MPI_(Get_version|Get_library_version|Abi_\w+|T_\w+)$")


def symbols(*options) -> dict[str, str]:
    """name -> nm's letter."""
    text = subprocess.run(["nm", *options], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1]: line.split()[-2] for line in text.splitlines() if len(line.split()) >= 2}


def test_exports_are_the_table_s():
    expected = {"gapless_shim_report": "T"}
    for row in rows():
        if row.mark != "passed":
            expected[f"MPI_{row.name}"] = "T"
            expected[f"PMPI_{row.name}"] = "T"
    for name in extensions() + additions():
        expected[f"MPIX_{name}"] = "T"
        expected[f"PMPIX_{name}"] = "T"
    for name in fortran_additions():
        expected[f"mpix_{name}"] = "T"
        expected[f"pmpix_{name}"] = "T"
    assert symbols("-D", "--defined-only", SHIM) == expected


def test_what_programs_ask_to_know_their_library_is_not_exported():
    assert not [name for name in symbols("-D", "--defined-only", SHIM) if FORBIDDEN.match(name)]
    assert not [row.name for row in rows() if FORBIDDEN.match(f"MPI_{row.name}")]


def test_no_library_is_looked_for_in_the_working_directory():
    for library in SHIM.parent.glob("*.so"):
        dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)
        assert all(all(path.split(":")) for path in paths), library


def test_nothing_is_needed_but_libc_and_nothing_runs_at_start():
    dynamic = subprocess.run(["readelf", "-dW", SHIM], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
    one_pointer = "8 (bytes)"  # the compiler's own frame_dummy
    assert re.search(r"INIT_ARRAYSZ\)\s+(.*)", dynamic).group(1) == one_pointer


def test_answers_about_availability_need_no_other_object():
    """They are given before relocation: a call of anything outside the library would be a jump to nowhere."""
    within_the_library = {"__ehdr_start", "gapless_shim_optional_begin", "gapless_shim_optional_end"}
    assert set(symbols("-u", os.environ["GAPLESS_TEST_AVAILABILITY"])) == within_the_library
