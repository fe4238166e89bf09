"""The documented environment variables are those that are read, and what is wrong with them is said once.

tests/base/test_settings.cpp has the values one by one, test_info.py what `gapless info` says of them.
"""

import re

import pytest

from conftest import LIBRARIES, for_each_mpi, is_mistake
from gapless import environment

ROW = re.compile(r'^ *\{"(GAPLESS\w*)",((?:\s*"[^"]*")+),', re.MULTILINE)
LITERAL = re.compile(r'"(GAPLESS(?:_[A-Z]+)*)"')
READERS = {"base/settings.cpp", "shim/resolve.cpp"}


def table_of_the_library(root) -> dict[str, str]:
    rows = ROW.findall((root / "src" / "base" / "settings.cpp").read_text())
    return {name: "".join(re.findall(r'"([^"]*)"', literals)) for name, literals in rows}


def documented() -> dict[str, str]:
    return {variable.name: variable.values for variable in environment.VARIABLES}


def test_the_library_and_the_documentation_have_the_same_names_and_values(root):
    assert table_of_the_library(root) == documented()


def test_names_are_listed_once(root):
    assert len(documented()) == len(environment.VARIABLES)
    assert len(ROW.findall((root / "src" / "base" / "settings.cpp").read_text())) == len(documented())


def test_every_name_in_the_sources_is_documented(root):
    files = [path for path in (root / "src").rglob("*") if path.suffix in {".cpp", ".hpp", ".cu", ".cuh", ".h", ".c"}]
    files += (root / "python" / "gapless").glob("*.py")
    assert {name for path in files for name in LITERAL.findall(path.read_text())} == documented().keys()


def test_our_variables_are_read_in_one_place_and_by_the_shim(root):
    files = [path for path in (root / "src").rglob("*") if path.is_file() and LITERAL.search(path.read_text())]
    assert {str(path.relative_to(root / "src")) for path in files} == READERS


def test_the_command_says_what_each_variable_does(gapless):
    done = gapless("variables")
    assert (done.returncode, done.stderr) == (0, "")
    headings = [line.partition("=")[0] for line in done.stdout.splitlines() if line.startswith("GAPLESS")]
    users_first = sorted(environment.VARIABLES, key=lambda variable: variable.for_developers)
    assert headings == [variable.name for variable in users_first]
    words = done.stdout.split()
    for variable in environment.VARIABLES:
        assert set(variable.meaning.split()) <= set(words)


def test_the_command_says_what_one_variable_does(gapless):
    assert "GAPLESS_PROFILE=<a path, or built-in>  (default: " in gapless("variables", "GAPLESS_PROFILE").stdout
    done = gapless("variables", "GAPLESS_GPU")
    assert done.stdout.startswith("GAPLESS_GPU=0|1  (default: 1)\n    0: never ask")
    assert done.stdout.count("GAPLESS_") == 1
    assert is_mistake(gapless("variables", "GAPLESS_SHEME"), 2)


def test_there_is_an_mpi_to_test_with():
    assert LIBRARIES, "set MPICH_PREFIX or OPENMPI_PREFIX"


@for_each_mpi
def test_a_program_is_told_once_of_each_variable_that_is_wrong(gapless, hello, kind, compiler, abi, name):
    wrong = {"GAPLESS": "yes", "GAPLESS_GPU_REGIME": "bogus", "GAPLESS_SHEME": "packed", "GAPLESS_TEST_X": "fine"}
    done = gapless("run", hello(kind, compiler), **wrong)
    assert (done.returncode, done.stdout) == (0, "")
    regimes = documented()["GAPLESS_GPU_REGIME"]
    assert done.stderr.splitlines() == [
        "gapless: GAPLESS=yes: ignored; accepted: 0, 1",
        f"gapless: GAPLESS_GPU_REGIME=bogus: ignored; accepted: {regimes}",
        "gapless: GAPLESS_SHEME=packed: no such variable; the nearest is GAPLESS_SCHEME",
    ]


@for_each_mpi
@pytest.mark.parametrize("settings", [{}, {"GAPLESS_POOL_BYTES": "1048576", "GAPLESS_SCHEME": "", "GAPLESS": "1"}])
def test_a_program_is_told_of_nothing_where_nothing_is_wrong(gapless, hello, settings, kind, compiler, abi, name):
    done = gapless("run", hello(kind, compiler), **settings)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@for_each_mpi
def test_a_program_with_gapless_switched_off_is_told_of_nothing(gapless, hello, kind, compiler, abi, name):
    done = gapless("run", hello(kind, compiler), GAPLESS="0", GAPLESS_SHEME="packed")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
