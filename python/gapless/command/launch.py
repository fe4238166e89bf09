"""`gapless run` and `gapless exec`: start a program with libgapless.so preloaded.

`run` starts anything, MPI launchers included. The preload is inherited by local ranks; launchers that do not pass
their environment to other nodes get the flag that makes them. `exec` is for inside a launcher's command line, where
every rank sets its own environment.
"""

import ctypes
import errno
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from gapless import locate
from gapless.command.launcher_options import OPENMPI_PAIRS, hydra_values, openmpi_values, options, srun_values
from gapless.environment import VARIABLES
from gapless.errors import UserError

OPENMPI = "Open MPI"
HYDRA = "Hydra"
SLURM = "Slurm"
ENV_LIST = "mca_base_env_list"  # a parameter of Open MPI: the variables that its launcher passes on


def preload(existing: str, shim: str) -> str:
    """The shim goes last: other tools that intercept MPI_* and call PMPI_* see the program's calls first. There is one
    shim, this installation's."""
    entries = [entry for entry in existing.replace(":", " ").split() if Path(entry).name != Path(shim).name]
    return ":".join([*entries, shim])


def why_not_preloadable(shim: Path) -> str | None:
    """The dynamic linker would start the program without gapless; None if it can be told this path."""
    for character, name in ((" ", "space"), (":", "colon")):
        if character in str(shim):
            return (
                f"{shim} cannot be preloaded, for LD_PRELOAD is split at each {name}; "
                "install gapless below a path without spaces and colons"
            )
    try:
        ctypes.CDLL(str(shim))
    except OSError as error:
        return f"libgapless.so cannot be preloaded: {error}"
    return None


def environment(shim: Path) -> dict[str, str]:
    if why := why_not_preloadable(shim):
        raise UserError(why)
    return {**os.environ, "LD_PRELOAD": preload(os.environ.get("LD_PRELOAD", ""), str(shim))}


@functools.cache
def launcher_kind(program: str) -> str | None:
    """Which launcher this is, if it is one of which is known how the ranks on all nodes get our variables.

    Debian has mpirun.openmpi and mpiexec.hydra beside mpirun. Any other name is not asked for its version: what a
    script does with that is not known.
    """
    name = Path(program).name
    if name == "srun":
        return SLURM
    if name in ("orterun", "prterun"):
        return OPENMPI
    if re.fullmatch(r"mpi(run|exec)([.-](openmpi|mpich|hydra)[\w-]*)?", name):
        try:
            answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if "Open MPI" in answer.stdout or "open-mpi" in answer.stdout:
            return OPENMPI
        if "HYDRA" in answer.stdout or "Intel(R) MPI" in answer.stdout:
            return HYDRA
    return None


def with_launcher_flags(command: list[str], settings: dict[str, str], others: tuple[str, ...] = ()) -> list[str]:
    """The command, with what its launcher needs to pass our variables and others to every node. Hydra passes all.

    A variable that the command itself gives a value keeps that; a value of LD_PRELOAD gets the shim besides.
    """
    names = ["LD_PRELOAD", *(v.name for v in VARIABLES if v.name in settings), *others]
    shim = settings.get("LD_PRELOAD", "").rpartition(":")[2]  # where preload() puts it
    kind, words = launcher_kind(command[0]), command[1:]
    if kind == OPENMPI:
        default = settings.get("OMPI_MCA_mca_base_env_list")
        words = for_each_program(words, lambda own: with_openmpi_flags(own, names, default, shim))
    elif kind == HYDRA:
        given = {name: settings[name] for name in names if name in settings}
        words = for_each_program(words, lambda own: with_hydra_flags(own, given, shim))
    elif kind == SLURM:
        # srun passes everything on unless told otherwise, by --export or by a variable of the same meaning.
        default = settings.get("SRUN_EXPORT_ENV") or settings.get("SLURM_EXPORT_ENV") or "ALL"
        words = for_each_program(words, lambda own: with_exports(own, names, default, shim))
    return [command[0], *words]


def for_each_program(words: list[str], change: Callable[[list[str]], list[str]]) -> list[str]:
    """Colons stand between the programs of a job, each with options of its own before it."""
    if ":" not in words:
        return change(words)
    end = words.index(":")
    return [*change(words[:end]), ":", *for_each_program(words[end + 1 :], change)]


def with_shim(setting: str, shim: str) -> str:
    """NAME=VALUE, with the shim added to a value of LD_PRELOAD."""
    name, is_given, value = setting.partition("=")
    return f"{name}={preload(value, shim)}" if name == "LD_PRELOAD" and is_given else setting


def with_openmpi_flags(words: list[str], names: list[str], default: str | None, shim: str) -> list[str]:
    """-x for each name. Of two -x for a name Open MPI 4 takes the last one, and 5 the first one. Open MPI 4 takes no -x
    beside a list of variables: then the list, by `default` that of the environment, gets the names."""
    words, given, is_listed = list(words), set(), False
    for i in options(words, openmpi_values):
        flag, is_joined, setting = words[i].partition("=")  # 5 takes --x=NAME=VALUE too
        if flag.lstrip("-") in OPENMPI_PAIRS.split() and words[i + 1 : i + 2] == [ENV_LIST] and i + 2 < len(words):
            words[i + 2] = with_names(words[i + 2], ";", names, shim)
            is_listed = True
        if flag not in ("-x", "--x") or (not is_joined and i + 1 == len(words)):
            continue
        setting = with_shim(setting if is_joined else words[i + 1], shim)
        if "=" in setting:
            given.add(setting.partition("=")[0])
        words[i : i + (1 if is_joined else 2)] = [f"{flag}={setting}"] if is_joined else [flag, setting]
    if is_listed:
        return words
    if default is not None:
        return ["--mca", ENV_LIST, with_names(default, ";", names, shim), *words]
    return [*(word for name in names if name not in given for word in ("-x", name)), *words]


def with_hydra_flags(words: list[str], settings: dict[str, str], shim: str) -> list[str]:
    """The shim where -env or -genv gives LD_PRELOAD a value, as two words or as one. Where other options say that not
    all variables are passed, -env for ours."""
    words, given, are_dropped = list(words), set(), False
    for i in options(words, hydra_values):
        option = words[i].lstrip("-")
        are_dropped |= option in ("envnone", "genvnone", "envlist", "genvlist")
        if option in ("env", "genv") and i + 1 < len(words):
            if words[i + 1] == "LD_PRELOAD" and i + 2 < len(words):
                words[i + 2] = preload(words[i + 2], shim)
            words[i + 1] = with_shim(words[i + 1], shim)
            given.add(words[i + 1].partition("=")[0])
    ours = {name: value for name, value in settings.items() if are_dropped and name not in given}
    return [*(word for name, value in ours.items() for word in ("-env", name, value)), *words]


def with_exports(words: list[str], names: list[str], default: str, shim: str) -> list[str]:
    """The words of one program of srun, with its --export changed so that our variables are passed on."""
    words, is_said = list(words), False
    for i in options(words, srun_values):
        if words[i] == "--export" and i + 1 < len(words):
            words[i : i + 2] = ["--export=" + words[i + 1]]
        if words[i].startswith("--export="):
            words[i] = "--export=" + exported(words[i].removeprefix("--export="), names, shim)
            is_said = True
    all_names = exported(default, names, shim)
    return words if is_said or all_names == default else ["--export=" + all_names, *words]


def exported(listed: str, names: list[str], shim: str) -> str:
    """What srun's --export lists, and the names, unless it lists all."""
    is_all = listed.split(",")[0].upper() == "ALL"
    return with_names(listed, ",", [] if is_all else names, shim, but=("NONE", "NIL"))


def with_names(listed: str, separator: str, names: list[str], shim: str, but: tuple[str, ...] = ()) -> str:
    """A list of variables, with and without values, and the names that it has not. `but`: words that name none."""
    items = [with_shim(item, shim) for item in listed.split(separator) if item and item.upper() not in but]
    given = {item.partition("=")[0] for item in items}
    return separator.join([*items, *(name for name in names if name not in given)])


def executable(command: str) -> str:
    """The path of what a shell would run by this name; what stands in the way is said as shells do."""
    if not command:
        raise UserError("the name of the program is empty", 127)
    if program := shutil.which(command):
        return program
    if Path(command).is_file():
        raise UserError(f"{command} is not executable", 126)
    if "/" in command and Path(command).is_dir():
        raise UserError(f"{command} is a directory", 126)
    raise UserError(f"{command} was not found", 127)


def replace_process(command: list[str], settings: dict[str, str]) -> None:
    try:
        os.execve(executable(command[0]), command, settings)
    except OSError as error:
        why = error.strerror
        if error.errno == errno.ENOEXEC:
            why = "it is no program of this machine, and no script that names its interpreter in a first line with #!"
        raise UserError(f"{command[0]} cannot be started: {why}", 126) from error


def what_is_promised(command: list[str], kind: str | None, settings: dict[str, str]) -> str:
    started = f"{command[0]} is a launcher ({kind})" if kind else f"{command[0]} is no launcher that gapless knows"
    if any("GAPLESS_ALL_RANKS" in word for word in command[1:]):
        return f"{started}; its command line names GAPLESS_ALL_RANKS"
    if value := settings.get("GAPLESS_ALL_RANKS"):
        return f"{started}; GAPLESS_ALL_RANKS={value}"
    return f"{started}; GAPLESS_ALL_RANKS is not set; set it to 1 if every process of the job runs gapless"


def run(arguments) -> int:
    settings = environment(locate.require(locate.SHIM))
    for option, name in (("statistics", "GAPLESS_STATISTICS"), ("verbose", "GAPLESS_VERBOSE")):
        if getattr(arguments, option):
            settings[name] = "1"
    command = arguments.command
    if arguments.through_launcher:
        # Another launcher, or a script with one inside, may start ranks without our variables, and the ranks with them
        # would wait for those for ever. A program without a launcher is one process, which needs no promise.
        if kind := launcher_kind(command[0]):
            settings.setdefault("GAPLESS_ALL_RANKS", "1")
        if arguments.verbose:
            print(f"gapless: {what_is_promised(command, kind, settings)}", file=sys.stderr, flush=True)
        command = with_launcher_flags(command, settings)
    replace_process(command, settings)
    return 0
