"""`gapless run` and `gapless exec`: start a program with libgapless.so preloaded.

`run` starts anything, MPI launchers included. The preload is inherited by local ranks; launchers that do not pass
their environment to other nodes get the flag that makes them. `exec` is for inside a launcher's command line, where
every rank sets its own environment.
"""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

from gapless import locate
from gapless.environment import VARIABLES
from gapless.errors import UserError

OPENMPI = "Open MPI"
SLURM = "Slurm"


def preload(existing: str, shim: str) -> str:
    """The shim goes last: other tools that intercept MPI_* and call PMPI_* see the program's calls first."""
    entries = [entry for entry in existing.replace(":", " ").split() if entry != shim]
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


def launcher_kind(program: str) -> str | None:
    """Which launcher this is, if it is one that does not pass its whole environment to other nodes.

    Hydra (MPICH, Intel MPI) does by default, so it is not told anything.
    """
    name = Path(program).name
    if name == "srun":
        return SLURM
    if name in ("orterun", "prterun"):
        return OPENMPI
    if name in ("mpirun", "mpiexec"):
        try:
            answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if "Open MPI" in answer.stdout or "open-mpi" in answer.stdout:
            return OPENMPI
    return None


def with_launcher_flags(command: list[str], settings: dict[str, str]) -> list[str]:
    """The command, with what its launcher needs to pass our variables to every node."""
    names = ["LD_PRELOAD", *(v.name for v in VARIABLES if v.name in settings)]
    kind = launcher_kind(command[0])
    if kind == OPENMPI:
        flags = [word for name in names for word in ("-x", name)]
        return [command[0], *flags, *command[1:]]
    if kind == SLURM:
        # srun passes everything on unless told otherwise, by --export or by the variable of the same meaning.
        rest = list(command[1:])
        for i, word in enumerate(rest):
            if word.startswith("--export="):
                rest[i] = with_exported(word, names)
                return [command[0], *rest]
        if settings.get("SLURM_EXPORT_ENV", "ALL") not in ("", "ALL"):
            return [command[0], with_exported("--export=" + settings["SLURM_EXPORT_ENV"], names), *rest]
    return command


def with_exported(option: str, names: list[str]) -> str:
    listed = option.removeprefix("--export=")
    if listed == "ALL" or listed.startswith("ALL,"):
        return option
    return "--export=" + ",".join([*(item for item in listed.split(",") if item not in ("NONE", "NIL")), *names])


def replace_process(command: list[str], settings: dict[str, str]) -> None:
    program = shutil.which(command[0])
    if program is None:
        if Path(command[0]).is_file():
            raise UserError(f"{command[0]} is not executable", 126)
        raise UserError(f"{command[0]} was not found", 127)
    try:
        os.execve(program, command, settings)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}", 126) from error


def run(arguments) -> int:
    settings = environment(locate.require(locate.SHIM))
    for option, name in (("statistics", "GAPLESS_STATISTICS"), ("verbose", "GAPLESS_VERBOSE")):
        if getattr(arguments, option):
            settings[name] = "1"
    command = arguments.command
    if arguments.through_launcher:
        settings.setdefault("GAPLESS_ALL_RANKS", "1")
        command = with_launcher_flags(command, settings)
    replace_process(command, settings)
    return 0
