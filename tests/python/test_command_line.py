"""Mistakes on the command line: one readable line on stderr and a non-zero exit, never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, is_mistake


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nonsense",),
        ("run",),
        ("run", "--"),
        ("exec",),
        ("explain",),
        ("explain", "int", "--count", "0"),
        ("explain", "int", "--count", "many"),
        ("info", "--nonsense"),
        ("bench",),
        ("bench", "no_such_benchmark"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(gapless, words):
    assert is_mistake(gapless(*words), 2)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--bogus"),
        ("run", "--bogus", "true"),
        ("exec", "--bogus", "true"),
        ("info", "--bogus"),
        ("explain", "int", "--bogus"),
        ("bench", "--bogus"),
    ],
)
def test_an_unknown_option_is_named_with_the_help_of_its_command(gapless, words):
    done = gapless(*words)
    assert is_mistake(done, 2)
    assert done.stderr.endswith(f"--bogus (see gapless {words[0]} --help)\n")


def test_a_launcher_before_the_program_of_info_is_answered_with_advice(gapless):
    done = gapless("info", "mpiexec", "-n", "2", "./app")
    assert is_mistake(done, 2)
    assert "the program is named without its launcher and arguments: gapless info ./app" in done.stderr


@pytest.mark.parametrize("words", [("explain", "int", "--count", "0"), ("calibrate", "--seconds", "1m")])
def test_a_number_that_is_none_is_named_with_what_is_needed(gapless, words):
    done = gapless(*words)
    assert is_mistake(done, 2)
    assert f"argument {words[-2]}: a number from 1 on is needed, not '{words[-1]}'" in done.stderr


@pytest.mark.parametrize("command", ["run", "exec"])
def test_no_program_is_named_with_the_help_of_its_command(gapless, command):
    assert gapless(command).stderr == f"gapless: there is no program to run (see gapless {command} --help)\n"


@pytest.mark.parametrize(
    "command, status, said",
    [
        ("run", 127, "the name of the program is empty"),
        ("exec", 127, "the name of the program is empty"),
        ("info", 2, "the name of the program is empty"),
        ("variables", 2, "the name of the variable is empty"),
        ("bench", 2, "bench needs the name of a benchmark, --list or --check"),
    ],
)
def test_an_empty_name_is_called_empty(gapless, libraries, command, status, said):
    done = gapless(command, "", GAPLESS_LIBRARY_DIRECTORY=str(libraries))
    assert is_mistake(done, status)
    assert done.stderr == f"gapless: {said}\n"


@pytest.mark.parametrize("words", [("run", "true"), ("exec", "true"), ("explain", "int")])
def test_a_directory_without_the_library_is_named(gapless, tmp_path, words):
    done = gapless(*words, GAPLESS_LIBRARY_DIRECTORY=str(tmp_path))
    assert is_mistake(done, 1)
    assert f"was not found in {tmp_path}; GAPLESS_LIBRARY_DIRECTORY is not the directory" in done.stderr


def test_a_library_that_is_none_is_named(gapless, tmp_path):
    (tmp_path / "libgapless-core.so").write_text("not a library")
    done = gapless("explain", "int", GAPLESS_LIBRARY_DIRECTORY=str(tmp_path))
    assert is_mistake(done, 1)
    assert "libgapless-core.so" in done.stderr


@pytest.mark.parametrize("command", ["run", "exec"])
def test_the_help_of_what_starts_programs_names_the_program(gapless, command):
    usage = gapless(command, "--help").stdout.splitlines()[0]
    assert usage == f"usage: gapless {command} [-h] [--statistics] [--verbose] CMD..."


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("explain", "--help"), ("--version",)])
def test_help_and_version_succeed(gapless, words):
    done = gapless(*words)
    assert done.returncode == 0
    assert "gapless" in done.stdout


def test_no_room_for_the_output_is_one_line():
    command = [sys.executable, ROOT / "bin" / "gapless", "variables"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("gapless: ") and done.stderr.count("\n") == 1
