"""`gapless calibrate`: measure what messages take with the user's MPI library, and write the profile.

The processes that measure are started by the user's launcher (worker.py); they load the MPI library by
themselves and measure with functions of the variant, so nothing is compiled and no MPI module for Python is needed.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from gapless import locate
from gapless.calibration import profile
from gapless.command import info, launch
from gapless.errors import UserError

# Set by launchers for the processes that they start.
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID")


def library_of_launcher(launcher: str) -> Path | None:
    """The libmpi of the installation that a launcher belongs to."""
    found = shutil.which(launcher)
    if found is None:
        return None
    for prefix in (Path(found).parent.parent, Path(found).resolve().parent.parent):
        for folder in ("lib", "lib64"):
            versions = sorted(prefix.glob(f"{folder}/libmpi.so.*"), key=lambda path: len(path.name))
            if versions:
                return versions[0]
    return None


def library_of(launcher: str) -> Path:
    finders = (
        lambda: library_of_launcher(launcher),
        lambda: info.mpi_of_mpicc(shutil.which("mpicc") or "mpicc"),
        lambda: info.mpi_of_python(sys.executable),
    )
    for finder in finders:
        if library := finder():
            return library
    raise UserError("no MPI library was found; name it with --library /path/to/libmpi.so", 2)


def identity(library: Path) -> dict:
    """What a profile is valid for."""
    found = info.probe(library)
    if "problem" in found:
        raise UserError(f"{library}: {found['problem']}")
    if found["shim"].get("state") != "active":
        raise UserError(f"{library}: gapless is off: {found['shim'].get('why', locate.not_found(locate.SHIM))}")
    return {"library": found["library"], "gpu": profile.gpu_name()}


def output_path(chosen: str | None, library: str) -> Path:
    path = chosen or profile.path_for(library)
    if path in ("", profile.BUILT_IN):
        raise UserError("there is no place for the profile; name one with --output FILE", 2)
    if Path(path).is_dir():
        raise UserError(f"{path} is a directory; name a file with --output FILE", 2)
    return Path(path).absolute()


def plan(arguments, launcher: str) -> tuple[list[str], dict[str, str], Path, str]:
    """The processes' command and environment, the file they write, and the library's name."""
    library = Path(arguments.library).absolute() if arguments.library else library_of(launcher)
    if not library.is_file():
        raise UserError(f"{library} was not found", 2)
    valid_for = identity(library)
    output = output_path(arguments.output, valid_for["library"])
    settings = launch.environment(locate.require(locate.SHIM))
    settings |= {"GAPLESS_PROFILE": profile.BUILT_IN, "PYTHONPATH": str(locate.PACKAGE.parent)}
    for name in ("GAPLESS_SCHEME", "GAPLESS_REPORT", "GAPLESS_STATISTICS"):
        settings.pop(name, None)
    work = {"mpi": str(library), "output": str(output), "seconds": arguments.seconds, "identity": valid_for}
    if is_one_of_several():
        work["last_words"] = last_words(arguments, output, valid_for["library"])
    worker = [sys.executable, "-m", "gapless.calibration.worker", json.dumps(work)]
    return worker, settings, output, valid_for["library"]


def is_one_of_several() -> bool:
    """Has a launcher started this process?"""
    return any(name in os.environ for name in RANK_VARIABLES)


def last_words(arguments, output: Path, library: str) -> str:
    use = f"programs use it with GAPLESS_PROFILE={output}" if arguments.output else "programs use it from now on"
    return f"{output}: the profile of {library}; {use}"


def what_is_kept(output: Path) -> str:
    return "; the next calibration goes on with what was measured" if profile.unfinished(output).exists() else ""


def calibrate(arguments) -> int:
    if is_one_of_several():
        worker, settings, *_ = plan(arguments, "mpirun")
        launch.replace_process(worker, settings)
    try:
        launcher = shlex.split(arguments.mpirun)
    except ValueError as error:
        raise UserError(f"--mpirun {arguments.mpirun}: {error}", 2) from error
    if not launcher:
        raise UserError("--mpirun names no launcher", 2)
    if shutil.which(launcher[0]) is None:
        raise UserError(f"{launcher[0]} was not found; name your launcher with --mpirun 'mpirun -n 2'", 127)
    worker, settings, output, library = plan(arguments, launcher[0])
    command = launch.with_launcher_flags([*launcher, *worker], settings, ("PYTHONPATH",))
    try:
        status = subprocess.run(command, env=settings).returncode
    except KeyboardInterrupt:
        raise UserError(f"the calibration was interrupted{what_is_kept(output)}", 130) from None
    if status != 0:
        raise UserError(f"the measuring processes ended with status {status}{what_is_kept(output)}", 1)
    if why := profile.fault(output, library):
        raise UserError(f"{output} cannot be used: {why}")
    print(last_words(arguments, output, library))
    return 0
