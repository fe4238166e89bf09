"""`gapless run` and `gapless exec`: start a program with libgapless.so preloaded.

`run` starts anything, MPI launchers included. The preload is inherited by local ranks; launchers that do not pass
their environment to other nodes get the flag that makes them. `exec` is for inside a launcher's command line, where
every rank sets its own environment.
"""

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from gapless import locate
from gapless.environment import VARIABLES
from gapless.errors import UserError

OPENMPI = "Open MPI"
HYDRA = "Hydra"
SLURM = "Slurm"

# srun's options whose value is never the next word: they have none, or may have one in their own word (I, K, k).
SRUN_LETTERS, SRUN_LETTERS_WITH_VALUE = "EHOQVXZhlsuv", "IKk"
SRUN_WORDS = (
    "async bcast compress consolidate-segments contiguous debugger-test disable-status exact exclusive "
    "external-launcher help hold immediate interactive kill-on-bad-exit label multi-prog nice no-allocate no-kill "
    "oom-kill-step overcommit overlap oversubscribe parsable preserve-env propagate pty quiet quit-on-interrupt "
    "reboot resv-ports send-libs spread-job spread-segments stepmgr test-only unbuffered usage use-min-nodes verbose "
    "version wait-for-children whole x11"
)


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
    """The command, with what its launcher needs to pass our variables and others to every node. Hydra passes all."""
    names = ["LD_PRELOAD", *(v.name for v in VARIABLES if v.name in settings), *others]
    kind = launcher_kind(command[0])
    if kind == OPENMPI:
        # A flag is for one program; colons stand between the programs of a job.
        flags = [word for name in names for word in ("-x", name)]
        words = [command[0], *flags]
        for word in command[1:]:
            words += [word, *flags] if word == ":" else [word]
        return words
    if kind == SLURM:
        # srun passes everything on unless told otherwise, by --export or by a variable of the same meaning.
        default = settings.get("SRUN_EXPORT_ENV") or settings.get("SLURM_EXPORT_ENV") or "ALL"
        return [command[0], *with_exports(command[1:], names, default)]
    return command


def with_exports(words: list[str], names: list[str], default: str) -> list[str]:
    """What follows srun, with its --export changed so that our variables are passed on, for each program of the job.

    From a program to the next colon all words are the program's own.
    """
    words, i, is_said = list(words), 0, False
    while i < len(words) and words[i].startswith("-") and words[i] != "--":
        if words[i] == "--export" and i + 1 < len(words):
            words[i : i + 2] = ["--export=" + words[i + 1]]
        if words[i].startswith("--export="):
            words[i] = "--export=" + exported(words[i].removeprefix("--export="), names)
            is_said = True
        i += 2 if takes_next_word(words[i]) else 1
    end = words.index(":", i) if ":" in words[i:] else len(words)
    others = [":", *with_exports(words[end + 1 :], names, default)] if end < len(words) else []
    all_names = exported(default, names)
    said = [] if is_said or all_names == default else ["--export=" + all_names]
    return [*said, *words[:end], *others]


def takes_next_word(option: str) -> bool:
    """Whether srun takes the next word for the option's value."""
    if option.startswith("--"):
        return "=" not in option and option.removeprefix("--") not in SRUN_WORDS.split()
    return bool(re.fullmatch(f"-[{SRUN_LETTERS}]*[^{SRUN_LETTERS}{SRUN_LETTERS_WITH_VALUE}]", option))


def exported(listed: str, names: list[str]) -> str:
    """What srun's --export lists, and the names, unless it lists all."""
    items = listed.split(",")
    if items[0].upper() == "ALL":
        return listed
    return ",".join([*(item for item in items if item.upper() not in ("", "NONE", "NIL")), *names])


def replace_process(command: list[str], settings: dict[str, str]) -> None:
    program = shutil.which(command[0])
    if program is None:
        if Path(command[0]).is_file():
            raise UserError(f"{command[0]} is not executable", 126)
        if "/" in command[0] and Path(command[0]).is_dir():
            raise UserError(f"{command[0]} is a directory", 126)
        raise UserError(f"{command[0]} was not found", 127)
    try:
        os.execve(program, command, settings)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}", 126) from error


def what_is_promised(program: str, kind: str | None, settings: dict[str, str]) -> str:
    started = f"{program} is a launcher ({kind})" if kind else f"{program} is no launcher that gapless knows"
    if value := settings.get("GAPLESS_ALL_RANKS"):
        return f"{started}; GAPLESS_ALL_RANKS={value}"
    return f"{started}; GAPLESS_ALL_RANKS is not set, and may be where each process of the job runs gapless"


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
            print(f"gapless: {what_is_promised(command[0], kind, settings)}", file=sys.stderr, flush=True)
        command = with_launcher_flags(command, settings)
    replace_process(command, settings)
    return 0
