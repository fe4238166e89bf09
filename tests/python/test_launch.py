"""`gapless run` and `gapless exec`: what the started program gets, and what launchers are told."""

import pytest

from conftest import is_mistake
from gapless.command import launch

SHOW = 'echo "preload=$LD_PRELOAD statistics=$GAPLESS_STATISTICS"; echo "arguments=$*"'
VERSIONS = {
    "openmpi": "mpirun (Open MPI) 5.0.11",
    "hydra": "HYDRA build details:",
    "intel": "Intel(R) MPI Library for Linux* OS, Version 2021.11",
}


@pytest.mark.parametrize("command", ["run", "exec"])
def test_the_program_is_preloaded_and_gets_its_arguments(gapless, libraries, program, command):
    show = program("show", SHOW)
    done = gapless(command, show, "-n", "4", "--count", GAPLESS_LIBRARY_DIRECTORY=str(libraries), LD_PRELOAD=None)
    assert f"preload={libraries}/libgapless.so " in done.stdout
    assert "arguments=-n 4 --count\n" in done.stdout


@pytest.mark.parametrize("command", ["run", "exec"])
@pytest.mark.parametrize("name", ["my libraries", "my:libraries"])
def test_a_library_that_cannot_be_preloaded_starts_nothing(gapless, library_folder, program, tmp_path, command, name):
    folder = library_folder(name)
    touches = program("touches", f'touch "{tmp_path}/started"')
    done = gapless(command, touches, GAPLESS_LIBRARY_DIRECTORY=str(folder))
    assert is_mistake(done, 1)
    assert f"{folder}/libgapless.so cannot be preloaded" in done.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("command", ["run", "exec"])
def test_a_library_that_is_none_starts_nothing(gapless, libraries, command):
    (libraries / "libgapless.so").write_text("not a library")
    done = gapless(command, "echo", "started", GAPLESS_LIBRARY_DIRECTORY=str(libraries))
    assert is_mistake(done, 1)
    assert f"cannot be preloaded: {libraries}/libgapless.so" in done.stderr


def test_the_status_is_the_programs(gapless, libraries, program):
    done = gapless("run", program("fails", "exit 7"), GAPLESS_LIBRARY_DIRECTORY=str(libraries))
    assert done.returncode == 7
    assert done.stderr == ""


def test_options_before_the_program_are_ours(gapless, libraries, program):
    show = program("show", SHOW)
    done = gapless("run", "--statistics", "--", show, "--statistics", GAPLESS_LIBRARY_DIRECTORY=str(libraries))
    assert "statistics=1" in done.stdout
    assert "arguments=--statistics\n" in done.stdout


def test_other_preloads_come_first_and_ours_only_once():
    assert launch.preload("", "/g.so") == "/g.so"
    assert launch.preload("/a.so:/b.so", "/g.so") == "/a.so:/b.so:/g.so"
    assert launch.preload("/g.so /a.so", "/g.so") == "/a.so:/g.so"


def test_a_program_that_is_missing_or_not_executable(gapless, libraries, tmp_path):
    (tmp_path / "data").write_text("no program")
    where = {"GAPLESS_LIBRARY_DIRECTORY": str(libraries)}
    assert is_mistake(gapless("run", "no-such-program", **where), 127)
    assert is_mistake(gapless("run", tmp_path / "data", **where), 126)


@pytest.mark.parametrize("name", ["mpirun", "mpiexec"])
def test_open_mpi_is_told_to_pass_our_variables_on(program, name):
    mpirun = str(program(name, f'echo "{VERSIONS["openmpi"]}"'))
    command = launch.with_launcher_flags([mpirun, "-n", "4", "app"], {"LD_PRELOAD": "x", "GAPLESS_SCHEME": "staged"})
    assert command == [mpirun, "-x", "LD_PRELOAD", "-x", "GAPLESS_SCHEME", "-n", "4", "app"]


@pytest.mark.parametrize("kind", ["hydra", "intel"])
def test_hydra_passes_everything_on_by_itself(program, kind):
    mpirun = str(program("mpirun", f'echo "{VERSIONS[kind]}"'))
    assert launch.with_launcher_flags([mpirun, "app"], {}) == [mpirun, "app"]


@pytest.mark.parametrize(
    "words, settings, expected",
    [
        (["-n", "4"], {}, ["-n", "4"]),
        (["--export=ALL,X=1"], {}, ["--export=ALL,X=1"]),
        (["--export=PATH"], {}, ["--export=PATH,LD_PRELOAD"]),
        (["--export=NONE"], {}, ["--export=LD_PRELOAD"]),
        (["-n", "4"], {"SLURM_EXPORT_ENV": "PATH"}, ["--export=PATH,LD_PRELOAD", "-n", "4"]),
    ],
)
def test_srun_is_told_only_where_its_export_would_drop_our_variables(words, settings, expected):
    assert launch.with_launcher_flags(["srun", *words, "app"], settings) == ["srun", *expected, "app"]


def test_a_program_that_is_no_launcher_is_left_alone():
    assert launch.with_launcher_flags(["./solver", "mpirun"], {}) == ["./solver", "mpirun"]
