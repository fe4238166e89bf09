"""`gapless info` on real MPI libraries and on programs that are none."""

import errno
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import LIBRARIES, PREFIXES, for_each_mpi, is_mistake
from gapless import environment, locate
from gapless.command import info
from gapless.errors import UserError


def test_there_is_an_mpi_to_test_with():
    assert LIBRARIES, "set MPICH_PREFIX or OPENMPI_PREFIX"


def sections(done, status: int = 0) -> dict:
    assert done.returncode == status, done.stderr
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
def test_a_program_uses_the_library_it_was_linked_with(gapless, hello, kind, compiler, abi, name):
    program = sections(gapless("info", "--json", hello(kind, compiler)))["program"]
    assert (program["ABI"], program["gapless"]) == (abi, "active")
    assert program["MPI"].startswith(name)
    assert Path(program["MPI library"]).resolve().is_relative_to(Path(PREFIXES[kind]).resolve())


def make_stand_in(folder: Path, soname: str, library: Path, version: str):
    """Makes a library that calls itself otherwise and has all the rest from `library`."""
    path, source, rest = folder / soname, folder / "stand_in.c", folder / "librest.so"
    source.write_text(f"""
        #include <string.h>
        int PMPI_Get_version(int *version, int *subversion) {{ *version = 5; *subversion = 0; return 0; }}
        int MPI_Get_version(int *version, int *subversion) {{ return PMPI_Get_version(version, subversion); }}
        int PMPI_Get_library_version(char *text, int *length) {{
          strcpy(text, "{version}");
          *length = strlen(text);
          return 0;
        }}
        int MPI_Get_library_version(char *text, int *length) {{ return PMPI_Get_library_version(text, length); }}
        """)
    shared = ("cc", "-shared", "-fPIC")
    # The dynamic linker takes a path for a name where the library is known by a path.
    subprocess.run([*shared, "-x", "c", "/dev/null", "-o", rest, f"-Wl,-soname,{library}"], check=True)
    subprocess.run([*shared, source, "-o", path, f"-Wl,-soname,{soname}", "-Wl,--no-as-needed", rest], check=True)


@for_each_mpi
def test_a_library_of_no_known_family_is_left_alone(gapless, hello, tmp_path, kind, compiler, abi, name):
    if abi == "openmpi":
        pytest.skip("Open MPI is known by its symbols, whatever it calls itself")
    program = hello(kind, compiler)
    real = Path(sections(gapless("info", "--json", program))["program"]["MPI library"])
    for version, is_served in (("Strange MPI 1.0, around\\nMPICH 5.0.2", False), ("CRAY MPICH version 9.0", True)):
        make_stand_in(tmp_path, real.name, real, version)
        done = gapless("info", "--json", program, LD_LIBRARY_PATH=str(tmp_path))
        found = sections(done, status=0 if is_served else 1)["program"]
        assert Path(found["MPI library"]).parent == tmp_path
        if is_served:
            assert found["gapless"] == "active"
        else:
            assert found["gapless"].startswith("off: ") and '"Strange MPI 1.0, around"' in found["gapless"], found


@for_each_mpi
def test_without_a_program_the_mpis_on_path_are_reported(gapless, kind, compiler, abi, name):
    path = f"{PREFIXES[kind]}/bin:{os.environ['PATH']}"
    found = sections(gapless("info", "--json", PATH=path))
    assert found["mpicc"]["MPI"].startswith(name)
    assert found["mpi4py"]["MPI"].startswith(name)


def test_a_missing_library_is_said(gapless, tmp_path):
    found = sections(gapless("info", "--json", GAPLESS_LIBRARY_DIRECTORY=str(tmp_path)))
    assert found["gapless"]["preloaded library"] == f"libgapless.so was not found in {tmp_path}"


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


def test_what_is_on_path_and_finds_no_library_says_why(gapless, program):
    folder = program("mpicc", "exit 1").parent
    program("python3", "exit 1")
    found = sections(gapless("info", "--json", PATH=f"{folder}:{os.environ['PATH']}"))
    assert found["mpicc"]["MPI library"] == "none found: mpicc -show names none that is there"
    assert found["mpi4py"]["MPI library"] == "none found: this Python cannot import mpi4py.MPI"


def test_a_program_without_mpi(gapless):
    program = sections(gapless("info", "--json", "/bin/ls"), status=1)["program"]
    assert program["MPI library"].startswith("none found")


@pytest.mark.parametrize(
    "line, name",
    [
        ("#!{folder}/bin/python", "python"),
        ("#! {folder}/bin/python3.11 -E", "python3.11"),
        ("#!/usr/bin/env python3", "python3"),
        ("#!/usr/bin/env -S HOME=/python python3 -u", "python3"),
    ],
)
def test_the_interpreter_that_a_script_names_is_asked(tmp_path, monkeypatch, line, name):
    library, folder = tmp_path / "lib" / "libmpi.so.12", tmp_path / "bin"
    folder.mkdir()
    for path, text in ((folder / name, f"#!/bin/sh\necho {library}\n"), (tmp_path / "script", line + "\npass\n")):
        path.write_text(text.format(folder=tmp_path))
        path.chmod(0o755)
    others = tmp_path / "others"
    others.mkdir()
    (others / "python3").write_text("#!/bin/sh\necho /others/libmpi.so.12\n")
    (others / "python3").chmod(0o755)
    is_found_on_path = line.startswith("#!/usr/bin/env")
    monkeypatch.setenv("PATH", f"{folder if is_found_on_path else others}:{os.environ['PATH']}")
    assert info.program_rows(str(tmp_path / "script"))["MPI library"] == str(library)


@pytest.mark.parametrize("line", ["", "#!", "#!/bin/sh", "#!/bin/sh /usr/bin/python3", "#!/usr/bin/env", "python3"])
def test_other_scripts_are_not_pythons(tmp_path, line):
    (tmp_path / "script").write_text(line + "\n")
    assert info.python_of(tmp_path / "script") is None


def test_a_program_that_may_not_be_read_is_one_line(program, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))  # of root any file may be read

    path = program("secret", "")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UserError, match=f"^{path} cannot be read: Permission denied$"):
        info.program_rows(str(path))


def test_what_is_no_program_is_told_apart(gapless, tmp_path):
    (tmp_path / "app.py").write_text("pass\n")
    for word, status, why in (
        ("no-such-program", 127, "was not found"),
        (tmp_path / "app.py", 126, "is not executable"),
        (tmp_path, 126, "is a directory"),
    ):
        done = gapless("info", word)
        assert is_mistake(done, status)
        assert done.stderr == f"gapless: {word} {why}\n"


def test_a_launcher_is_no_program(gapless, program):
    done = gapless("info", program("mpirun", "echo HYDRA build details"))
    assert is_mistake(done, 2)
    assert "is a launcher (Hydra); name the program that it starts" in done.stderr


@pytest.mark.parametrize("separator", [" ", ":"])
@for_each_mpi
def test_libraries_that_cannot_be_preloaded_are_not_active(gapless, tmp_path, separator, kind, compiler, abi, name):
    folder = tmp_path / f"my{separator}libraries"
    shutil.copytree(locate.require(locate.SHIM).parent, folder, ignore=lambda _, names: without_tests(names))
    path = f"{PREFIXES[kind]}/bin:{os.environ['PATH']}"
    found = sections(gapless("info", "--json", PATH=path, GAPLESS_LIBRARY_DIRECTORY=str(folder)))
    for said in (found["gapless"]["problem"], found["mpicc"]["gapless"].removeprefix("off: ")):
        assert said.startswith(f"{folder}/libgapless.so cannot be preloaded")
    assert found["mpicc"]["gapless"].startswith("off: ")


def test_a_library_that_is_none_is_a_problem(gapless, libraries):
    (libraries / "libgapless.so").write_text("not a library")
    found = sections(gapless("info", "--json", "/bin/ls", GAPLESS_LIBRARY_DIRECTORY=str(libraries)), status=1)
    assert f"cannot be preloaded: {libraries}/libgapless.so" in found["gapless"]["problem"]


def without_tests(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith("libgapless")]


def test_settings_are_shown_and_misspelt_ones_found(gapless):
    settings = sections(gapless("info", "--json", GAPLESS_SCHEME="packed", GAPLESS_SHEME="packed"))["environment"]
    assert settings["GAPLESS_SCHEME"] == "packed"
    assert settings["GAPLESS_SHEME"] == "packed (no such variable; the nearest is GAPLESS_SCHEME)"


@for_each_mpi
def test_what_is_wrong_with_settings_is_said_once(gapless, kind, compiler, abi, name):
    path = f"{PREFIXES[kind]}/bin:{os.environ['PATH']}"
    done = gapless("info", PATH=path, GAPLESS_SCHEME="bogus", GAPLESS_SHEME="packed", GAPLESS_GPU="2")
    assert done.stderr == ""
    said = ("no such variable; the nearest", "bogus (ignored; accepted", "2 (ignored; accepted")
    assert [done.stdout.count(text) for text in said] == [1, 1, 1], done.stdout
    assert "profile" in done.stdout  # for which the library reads its settings


def flagged(gapless, **settings) -> set[str]:
    shown = sections(gapless("info", "--json", "/bin/ls", **settings), status=1)["environment"]
    assert settings.items() <= {name: value.split(" (")[0] for name, value in shown.items()}.items()
    return {name for name, value in shown.items() if "ignored" in value}


def test_every_value_that_is_documented_is_accepted(gapless):
    words = {variable.name: variable.words() for variable in environment.VARIABLES}
    for i in range(max(map(len, words.values()))):
        assert flagged(gapless, **{name: listed[i] for name, listed in words.items() if i < len(listed)}) == set()
    assert flagged(gapless, GAPLESS_POOL_BYTES="0", GAPLESS_DEVICE_PLUGIN="/nowhere") == set()


def test_every_value_that_is_not_is_flagged_with_those_that_are(gapless):
    wrong = {v.name: "bogus" for v in environment.VARIABLES if v.words() or v.name == "GAPLESS_POOL_BYTES"}
    shown = sections(gapless("info", "--json", "/bin/ls", **wrong), status=1)["environment"]
    for variable in environment.VARIABLES:
        if variable.name in wrong:
            assert shown[variable.name] == f"bogus (ignored; accepted: {variable.values})"


def test_settings_are_shown_unchecked_where_the_library_is_missing(gapless, tmp_path):
    settings = {"GAPLESS_LIBRARY_DIRECTORY": str(tmp_path), "GAPLESS_SCHEME": "bogus"}
    shown = sections(gapless("info", "--json", "/bin/ls", **settings), status=1)["environment"]
    assert shown["GAPLESS_SCHEME"] == "bogus"
    assert "libgapless-core.so was not found" in shown["not checked"]


def test_the_text_has_every_section(gapless):
    done = gapless("info", GAPLESS_VERBOSE="0")
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert titles == ["gapless", "GPU", "environment", "mpicc", "mpi4py"]
