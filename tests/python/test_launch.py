"""`gapless run` and `gapless exec`: what the started program gets, and what launchers are told."""

import pytest

from conftest import is_mistake
from gapless.command import launch

SHOW = 'echo "preload=$LD_PRELOAD statistics=$GAPLESS_STATISTICS"; echo "arguments=$*"'
VERSIONS = {
    "openmpi": "mpirun (Open MPI) 5.0.11",
    "debian": "mpirun.openmpi (OpenRTE) 4.1.4; Report bugs to http://www.open-mpi.org/community/help/",
    "hydra": "HYDRA build details:",
    "intel": "Intel(R) MPI Library for Linux* OS, Version 2021.11",
    "other": "mpiexec version 1.2.12",
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


def test_verbose_says_what_is_promised(gapless, libraries, program):
    where = {"GAPLESS_LIBRARY_DIRECTORY": str(libraries), "GAPLESS_ALL_RANKS": None}
    script, launcher = program("script", "exit 0"), program("mpirun", "echo HYDRA build details:")
    assert gapless("run", "--verbose", script, **where).stderr == (
        f"gapless: {script} is no launcher that gapless knows; "
        "GAPLESS_ALL_RANKS is not set; set it to 1 if every process of the job runs gapless\n"
    )
    said = f"gapless: {launcher} is a launcher (Hydra); GAPLESS_ALL_RANKS="
    assert gapless("run", "--verbose", launcher, **where).stderr == said + "1\n"
    assert gapless("run", "--verbose", launcher, **{**where, "GAPLESS_ALL_RANKS": "0"}).stderr == said + "0\n"
    assert gapless("run", launcher, **where).stderr == ""
    given = gapless("run", "--verbose", launcher, "-genv", "GAPLESS_ALL_RANKS", "0", **where).stderr
    assert given == f"gapless: {launcher} is a launcher (Hydra); its command line names GAPLESS_ALL_RANKS\n"


def test_other_preloads_come_first_and_ours_only_once():
    assert launch.preload("", "/g.so") == "/g.so"
    assert launch.preload("/a.so:/b.so", "/g.so") == "/a.so:/b.so:/g.so"
    assert launch.preload("/g.so /a.so", "/g.so") == "/a.so:/g.so"
    assert launch.preload("/other/g.so:/a.so", "/here/g.so") == "/a.so:/here/g.so"


def test_a_program_that_is_missing_or_not_executable(gapless, libraries, tmp_path):
    (tmp_path / "data").write_text("no program")
    where = {"GAPLESS_LIBRARY_DIRECTORY": str(libraries)}
    assert is_mistake(gapless("run", "no-such-program", **where), 127)
    assert is_mistake(gapless("run", tmp_path / "data", **where), 126)
    assert is_mistake(gapless("run", tmp_path, **where), 126)
    (tmp_path / "script").write_text("echo started\n")
    (tmp_path / "script").chmod(0o755)
    done = gapless("run", tmp_path / "script", **where)
    assert is_mistake(done, 126)
    assert "no script that names its interpreter in a first line with #!" in done.stderr


@pytest.mark.parametrize(
    "name, kind",
    [("mpirun", "openmpi"), ("mpiexec", "openmpi"), ("mpirun.openmpi", "debian"), ("mpiexec-openmpi-mp", "openmpi")],
)
def test_open_mpi_is_told_to_pass_our_variables_on(program, name, kind):
    mpirun = str(program(name, f'echo "{VERSIONS[kind]}"'))
    command = launch.with_launcher_flags([mpirun, "-n", "4", "app"], {"LD_PRELOAD": "x", "GAPLESS_SCHEME": "staged"})
    assert command == [mpirun, "-x", "LD_PRELOAD", "-x", "GAPLESS_SCHEME", "-n", "4", "app"]


def test_open_mpi_is_told_for_each_program_of_a_job():
    command = launch.with_launcher_flags(["orterun", "-n", "1", "a", ":", "-n", "2", "b"], {})
    flags = ["-x", "LD_PRELOAD"]
    assert command == ["orterun", *flags, "-n", "1", "a", ":", *flags, "-n", "2", "b"]


@pytest.mark.parametrize(
    "words, expected",
    [
        ("-x LD_PRELOAD=/t.so app", "-x GAPLESS_SCHEME -x LD_PRELOAD=/t.so:/g.so app"),
        ("-n 2 -x LD_PRELOAD=/old/g.so app", "-x GAPLESS_SCHEME -n 2 -x LD_PRELOAD=/g.so app"),
        ("-x GAPLESS_SCHEME=native app", "-x LD_PRELOAD -x GAPLESS_SCHEME=native app"),
        ("--x GAPLESS_SCHEME= app", "-x LD_PRELOAD --x GAPLESS_SCHEME= app"),
        ("--x=LD_PRELOAD=/t.so app", "-x GAPLESS_SCHEME --x=LD_PRELOAD=/t.so:/g.so app"),
        ("-x GAPLESS_SCHEME -x FOO=1 app", "{} -x GAPLESS_SCHEME -x FOO=1 app"),
        ("a : -x GAPLESS_SCHEME=packed b", "{} a : -x LD_PRELOAD -x GAPLESS_SCHEME=packed b"),
        (
            "--mca btl self -q --np 2 -x GAPLESS_SCHEME=1 app",
            "-x LD_PRELOAD --mca btl self -q --np 2 -x GAPLESS_SCHEME=1 app",
        ),
        ("-n 2 app -x LD_PRELOAD=/t.so", "{} -n 2 app -x LD_PRELOAD=/t.so"),
        ("--oversubscribe app -x GAPLESS_SCHEME=1", "{} --oversubscribe app -x GAPLESS_SCHEME=1"),
        ("--mca x y app -x GAPLESS_SCHEME=1", "{} --mca x y app -x GAPLESS_SCHEME=1"),
        ("-n 2 -x", "{} -n 2 -x"),
    ],
)
def test_values_that_the_user_has_open_mpi_pass_on_are_kept(words, expected):
    """4 and 5 differ in which -x of a name they take, so that there is one."""
    command = launch.with_launcher_flags(
        ["orterun", *words.split()], {"LD_PRELOAD": "/e.so:/g.so", "GAPLESS_SCHEME": "x"}
    )
    assert command == ["orterun", *expected.format("-x LD_PRELOAD -x GAPLESS_SCHEME").split()]


@pytest.mark.parametrize(
    "words, expected",
    [
        ("-genv LD_PRELOAD /t.so -n 2 app", "-genv LD_PRELOAD /t.so:/g.so -n 2 app"),
        ("-n 2 --env LD_PRELOAD=/t.so app", "-n 2 --env LD_PRELOAD=/t.so:/g.so app"),
        ("-env A 1 a : -l -env LD_PRELOAD /t.so b", "-env A 1 a : -l -env LD_PRELOAD /t.so:/g.so b"),
        ("-genv A LD_PRELOAD -genv GAPLESS_SCHEME packed a", "-genv A LD_PRELOAD -genv GAPLESS_SCHEME packed a"),
        ("-genvall container --env LD_PRELOAD=/t.so a", "-genvall container --env LD_PRELOAD=/t.so a"),
        ("-genv A=1 container --env LD_PRELOAD /t.so a", "-genv A=1 container --env LD_PRELOAD /t.so a"),
        ("-n 2 -genv LD_PRELOAD", "-n 2 -genv LD_PRELOAD"),
    ],
)
def test_a_preload_that_the_user_has_hydra_pass_on_gets_ours_besides(program, words, expected):
    mpirun = str(program("mpirun", f'echo "{VERSIONS["hydra"]}"'))
    command = launch.with_launcher_flags([mpirun, *words.split()], {"LD_PRELOAD": "/g.so"})
    assert command == [mpirun, *expected.split()]


@pytest.mark.parametrize(
    "words, expected",
    [
        ("-genvnone -n 2 a", "{} -genvnone -n 2 a"),
        ("-n 2 -envlist PATH,HOME a : -n 1 b", "{} -n 2 -envlist PATH,HOME a : -n 1 b"),
        ("-envnone -env GAPLESS_SCHEME=native a", "-env LD_PRELOAD /g.so -envnone -env GAPLESS_SCHEME=native a"),
        ("-n 2 a -envnone", "-n 2 a -envnone"),
    ],
)
def test_hydra_is_given_our_variables_where_it_is_told_to_drop_some(program, words, expected):
    mpirun = str(program("mpirun", f'echo "{VERSIONS["hydra"]}"'))
    settings = {"LD_PRELOAD": "/g.so", "GAPLESS_SCHEME": "x"}
    command = launch.with_launcher_flags([mpirun, *words.split()], settings)
    assert command == [mpirun, *expected.format("-env LD_PRELOAD /g.so -env GAPLESS_SCHEME x").split()]


@pytest.mark.parametrize(
    "words, default, expected",
    [
        ("a", "FOO=1;BAR", "--mca mca_base_env_list FOO=1;BAR;LD_PRELOAD;GAPLESS_SCHEME a"),
        ("a", "", "--mca mca_base_env_list LD_PRELOAD;GAPLESS_SCHEME a"),
        ("a", "GAPLESS_SCHEME=native", "--mca mca_base_env_list GAPLESS_SCHEME=native;LD_PRELOAD a"),
        (
            "--mca mca_base_env_list LD_PRELOAD=/t.so a",
            None,
            "--mca mca_base_env_list LD_PRELOAD=/t.so:/g.so;GAPLESS_SCHEME a",
        ),
        ("-gmca mca_base_env_list A=1 a", "B", "-gmca mca_base_env_list A=1;LD_PRELOAD;GAPLESS_SCHEME a"),
        ("a --mca mca_base_env_list A=1", None, "-x LD_PRELOAD -x GAPLESS_SCHEME a --mca mca_base_env_list A=1"),
    ],
)
def test_a_list_of_variables_for_open_mpi_gets_ours_besides(words, default, expected):
    """Open MPI 4 refuses to start a job with such a list and -x."""
    settings = {"LD_PRELOAD": "/g.so", "GAPLESS_SCHEME": "x"}
    if default is not None:
        settings["OMPI_MCA_mca_base_env_list"] = default
    command = launch.with_launcher_flags(["orterun", *words.split()], settings)
    assert command == ["orterun", *expected.split()]


def test_open_mpi_passes_on_what_else_a_calibration_needs():
    settings = {"GAPLESS_PROFILE": "built-in", "PYTHONPATH": "/p"}
    command = launch.with_launcher_flags(["orterun", "python3"], settings, ("PYTHONPATH",))
    assert command == ["orterun", "-x", "LD_PRELOAD", "-x", "GAPLESS_PROFILE", "-x", "PYTHONPATH", "python3"]


@pytest.mark.parametrize("kind", ["hydra", "intel"])
def test_hydra_passes_everything_on_by_itself(program, kind):
    mpirun = str(program("mpirun", f'echo "{VERSIONS[kind]}"'))
    assert launch.with_launcher_flags([mpirun, "app"], {}) == [mpirun, "app"]


SET = {"LD_PRELOAD": "/g.so", "GAPLESS_SCHEME": "native"}


@pytest.mark.parametrize(
    "words, settings, expected",
    [
        (["-n", "4"], {}, ["-n", "4"]),
        (["--export=ALL,X=1"], {}, ["--export=ALL,X=1"]),
        (["--export=PATH"], {}, ["--export=PATH,LD_PRELOAD"]),
        (["--export=NONE"], {}, ["--export=LD_PRELOAD"]),
        (["-n", "4"], {"SLURM_EXPORT_ENV": "PATH"}, ["--export=PATH,LD_PRELOAD", "-n", "4"]),
        (["--export", "NONE"], {}, ["--export=LD_PRELOAD"]),
        (["-n", "4", "--export", "PATH", "-l"], {}, ["-n", "4", "--export=PATH,LD_PRELOAD", "-l"]),
        (["--export", "all"], {}, ["--export=all"]),
        (["-p", "test", "--export=NONE"], {}, ["-p", "test", "--export=LD_PRELOAD"]),
        (["--exclusive", "--export=NONE"], {"SLURM_EXPORT_ENV": "PATH"}, ["--exclusive", "--export=LD_PRELOAD"]),
        (["-l"], {"SRUN_EXPORT_ENV": "NONE", "SLURM_EXPORT_ENV": "ALL"}, ["--export=LD_PRELOAD", "-l"]),
        (["-l"], {"SRUN_EXPORT_ENV": "ALL", "SLURM_EXPORT_ENV": "NONE"}, ["-l"]),
        (["--export=NONE", "a", ":", "-n", "4"], {}, ["--export=LD_PRELOAD", "a", ":", "-n", "4"]),
        (["a", ":", "--export=NONE"], {}, ["a", ":", "--export=LD_PRELOAD"]),
        (["--export=ALL,LD_PRELOAD=/t.so"], SET, ["--export=ALL,LD_PRELOAD=/t.so:/g.so"]),
        (["--export=ALL,GAPLESS_SCHEME=packed"], SET, ["--export=ALL,GAPLESS_SCHEME=packed"]),
        (["--export=LD_PRELOAD=/t.so,PATH"], SET, ["--export=LD_PRELOAD=/t.so:/g.so,PATH,GAPLESS_SCHEME"]),
        (["--export", "GAPLESS_SCHEME=packed"], SET, ["--export=GAPLESS_SCHEME=packed,LD_PRELOAD"]),
        (
            ["-l"],
            {**SET, "SLURM_EXPORT_ENV": "ALL,LD_PRELOAD=/t.so"},
            ["--export=ALL,LD_PRELOAD=/t.so:/g.so", "-l"],
        ),
    ],
)
def test_srun_is_told_only_where_its_export_would_drop_our_variables(words, settings, expected):
    assert launch.with_launcher_flags(["srun", *words, "app"], settings) == ["srun", *expected, "app"]


@pytest.mark.parametrize(
    "options",
    ["", "-n 4", "-n4", "--ntasks 4", "--ntasks=4", "--label", "-l", "-ul -K", "-K1", "-un 4", "-p test", "--"],
)
@pytest.mark.parametrize("own", ["--export=csv", "--export csv"])
def test_arguments_of_the_program_that_srun_starts_are_its_own(options, own):
    command = ["srun", *options.split(), "./convert", *own.split(), "in.nc"]
    assert launch.with_launcher_flags(command, {}) == command
    told = launch.with_launcher_flags(command, {"SLURM_EXPORT_ENV": "NONE"})
    assert told == ["srun", "--export=LD_PRELOAD", *command[1:]]


ALL_RANKS = 'if [ "$1" = --version ]; then echo "{}"; else echo "all=$GAPLESS_ALL_RANKS"; fi'


@pytest.fixture
def all_ranks(gapless, libraries, program):
    """all_ranks(name, kind) -> what a launcher of this name and version gets for GAPLESS_ALL_RANKS."""

    def call(name: str, kind: str, command="run", value=None) -> str:
        launcher = program(name, ALL_RANKS.format(VERSIONS[kind]))
        settings = {"GAPLESS_LIBRARY_DIRECTORY": str(libraries), "GAPLESS_ALL_RANKS": value}
        return gapless(command, launcher, "-n", "4", "app", **settings).stdout.strip()

    return call


@pytest.mark.parametrize(
    "name, kind",
    [
        ("mpirun", "openmpi"),
        ("mpirun.openmpi", "debian"),
        ("mpirun.mpich", "hydra"),
        ("mpiexec.hydra", "hydra"),
        ("mpiexec", "intel"),
        ("srun", "other"),
    ],
)
def test_all_ranks_are_vouched_for_behind_a_launcher_that_is_known(all_ranks, name, kind):
    assert all_ranks(name, kind) == "all=1"
    assert all_ranks(name, kind, value="0") == "all=0"
    assert all_ranks(name, kind, command="exec") == "all="


@pytest.mark.parametrize(
    "name, kind", [("mpiexec", "other"), ("mpirun_rsh", "other"), ("mpirun.sh", "openmpi"), ("job.sh", "openmpi")]
)
def test_nothing_is_promised_behind_another_command(all_ranks, name, kind):
    assert all_ranks(name, kind) == "all="
    assert all_ranks(name, kind, value="1") == "all=1"


def test_a_program_that_is_no_launcher_is_left_alone():
    assert launch.with_launcher_flags(["./solver", "mpirun"], {}) == ["./solver", "mpirun"]
