"""`gapless info`: which MPI library and GPU a program would use, how gapless would serve them, and what is missing."""

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from gapless import __version__, locate
from gapless.calibration import profile
from gapless.command import launch
from gapless.errors import UserError


def output_of(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def probe(library: Path) -> dict:
    """What probe.py says, or {"problem": why it cannot}. An MPI library must not be loaded into this process."""
    command = [sys.executable, "-m", "gapless.command.probe", str(library), str(locate.find(locate.SHIM) or "")]
    settings = {**os.environ, "PYTHONPATH": str(locate.PACKAGE.parent)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=settings)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"problem": str(error)}
    if done.returncode != 0:
        return {"problem": (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]}
    found = json.loads(done.stdout)
    if found["shim"]:
        found["library"] = profile.library_name(found["version_text"])
    return found


def gapless_rows() -> dict[str, str]:
    rows = {"version": __version__}
    for what, name in (("preloaded library", locate.SHIM), ("core", locate.CORE), ("CUDA plugin", locate.PLUGIN)):
        rows[what] = str(locate.find(name) or locate.not_found(name))
    if why := not_preloadable():
        rows["problem"] = why
    return rows


def not_preloadable() -> str | None:
    shim = locate.find(locate.SHIM)
    return launch.why_not_preloadable(shim) if shim else None


def setting_faults() -> dict[str, str]:
    """Variable -> what is wrong with it, in the words of the library that reads them."""
    faults = ctypes.CDLL(str(locate.require(locate.CORE))).gapless_settings_faults
    faults.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(65536)
    faults(text, ctypes.c_size_t(len(text)))
    return dict(line.split("=", 1) for line in text.value.decode(errors="replace").splitlines() if "=" in line)


def setting_rows() -> dict[str, str]:
    """Our variables as they are set, with what is wrong with them. The wrong ones are then taken away: they are
    ignored anyway, and the library would say it again on stderr when it is asked for more."""
    ours = {name: value for name, value in os.environ.items() if name == "GAPLESS" or name.startswith("GAPLESS_")}
    if not ours:
        return {}
    try:
        faults = setting_faults()
    except (OSError, AttributeError, UserError) as error:
        return {**ours, "not checked": str(error)}
    for name in faults:
        os.environ.pop(name, None)
    return {name: f"{value} ({faults[name]})" if name in faults else value for name, value in ours.items()}


def gpu_rows() -> dict[str, str]:
    """Asks the driver itself, as gapless does; no CUDA toolkit is needed."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {"GPU": "none: there is no NVIDIA driver (libcuda.so.1); host memory only"}
    version, count, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return {"GPU": "none: the NVIDIA driver finds no device; host memory only"}
    driver.cuDriverGetVersion(ctypes.byref(version))
    rows = {"GPU driver": f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"}
    for device in range(count.value):
        driver.cuDeviceGetName(name, len(name), device)
        rows[f"GPU {device}"] = name.value.decode()
    if locate.find(locate.PLUGIN) is None:
        rows["GPU support"] = f"off: {locate.not_found(locate.PLUGIN)} (nvcc builds it)"
    return rows


def library_rows(library: Path) -> dict[str, str]:
    """What the MPI library says of itself, and what gapless would do for it."""
    rows = {"MPI library": str(library)}
    found = probe(library)
    if "problem" in found:
        return {**rows, "problem": found["problem"]}
    rows["MPI"] = found["version"]
    if not found["shim"]:
        return {**rows, "gapless": f"off: {locate.not_found(locate.SHIM)}"}
    report = found["shim"]
    rows["ABI"] = report["abi"]
    why = report["why"] if report["state"] != "active" else not_preloadable()
    rows["gapless"] = f"off: {why}" if why else "active"
    if report["variant"]:
        rows["variant"] = report["variant"]
    rows["library"] = found["library"]
    rows["profile"] = profile.in_use(found["library"])
    return rows


# Cray's have the compiler's name (libmpi_gnu_123.so.12); libmpi_cxx and libmpi_mpifh and the like are no MPI library.
MPI_LIBRARY = r"libmpi(?:ch)?(?:_(?!cxx|mpifh|usempi|java)\w+)?\.so[.\d]*"


def mpi_of_program(program: Path) -> Path | None:
    """The libmpi that the dynamic linker would load for an executable."""
    for line in (output_of(["ldd", str(program)]) or "").splitlines():
        match = re.match(rf"\s*{MPI_LIBRARY} => (/\S+)", line)
        if match:
            return Path(match[1])
    return None


def mpi_of_python(interpreter: str) -> Path | None:
    """The libmpi that mpi4py loads, which it may find without the linker's help."""
    code = (
        "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if '/libmpi' in line}, sep='\\n')"
    )
    for line in (output_of([interpreter, "-c", code]) or "").splitlines():
        if re.fullmatch(MPI_LIBRARY, Path(line).name):
            return Path(line)
    return None


def mpi_of_mpicc(mpicc: str) -> Path | None:
    line = output_of([mpicc, "-show"]) or ""
    names = [name for name in re.findall(r"-l(mpi\S*)", line) if name in ("mpi", "mpich", "mpi_abi")]
    folders = [Path(folder) for folder in re.findall(r"-L(\S+)", line)] + [Path(mpicc).resolve().parent.parent / "lib"]
    for folder in folders:
        for name in names:
            # lib<name>.so may be a linker script; what has a version in its name is the library.
            versions = sorted(folder.glob(f"lib{name}.so.*"), key=lambda path: len(path.name))
            if versions:
                return versions[0]
            # Debian keeps Open MPI's link for the linker apart from the library.
            link = folder / f"lib{name}.so"
            if link.is_symlink() and link.exists():
                return link.resolve()
    return None


def python_of(program: Path) -> str | None:
    """The Python that a program is, or that the #! line of a script names; None of what runs without Python."""
    if program.name.startswith("python"):
        return str(program)
    try:
        with program.open("rb") as file:
            first = file.readline(256)  # Linux reads no more of the line
    except OSError as error:
        raise UserError(f"{program} cannot be read: {error.strerror}") from error
    if not first.startswith(b"#!"):
        return None
    words = first.removeprefix(b"#!").decode(errors="replace").split()
    if words and Path(words[0]).name == "env":
        # Before what env starts there may be options and variables.
        words = [word for word in words[1:] if "=" not in word and Path(word).name.startswith("python")]
    return words[0] if words and Path(words[0]).name.startswith("python") else None


def program_rows(command: str) -> dict[str, str]:
    found = launch.executable(command)
    if kind := launch.launcher_kind(found):
        raise UserError(f"{command} is a launcher ({kind}); name the program that it starts: gapless info ./app", 2)
    program = Path(found)
    interpreter = python_of(program)
    library = mpi_of_python(interpreter) if interpreter else None
    library = library or mpi_of_program(program)
    if library is None:
        return {"program": found, "MPI library": "none found: it is not an MPI program, or it loads MPI by itself"}
    return {"program": found, **library_rows(library)}


def environment_sections() -> dict[str, dict[str, str]]:
    """The MPIs that this environment offers: to C through mpicc, to Python through mpi4py."""
    sections = {}
    ways = (
        ("mpicc", "mpicc", mpi_of_mpicc, "mpicc -show names none that is there"),
        ("mpi4py", "python3", mpi_of_python, "this Python cannot import mpi4py.MPI"),
    )
    for title, program, finder, why in ways:
        found = shutil.which(program)
        if found is None:
            sections[title] = {"program": f"{program} is not on PATH"}
            continue
        library = finder(found)
        rows = library_rows(library) if library else {"MPI library": f"none found: {why}"}
        sections[title] = {"program": found, **rows}
    return sections


def info(arguments) -> int:
    """Prints the sections. The status is 1 where a program is named that gapless would not serve."""
    if arguments.program == "":
        raise UserError("the name of the program is empty", 2)
    sections = {"gapless": gapless_rows(), "GPU": gpu_rows()}
    if settings := setting_rows():
        sections["environment"] = settings
    if arguments.program:
        sections["program"] = program_rows(arguments.program)
    else:
        sections.update(environment_sections())
    status = 0 if not arguments.program or sections["program"].get("gapless") == "active" else 1
    if arguments.json:
        print(json.dumps(sections, indent=2))
        return status
    width = max(len(name) for rows in sections.values() for name in rows)
    for title, rows in sections.items():
        print(title)
        for name, value in rows.items():
            print(f"  {name:<{width}}  " + value.strip().replace("\n", "\n" + " " * (width + 4)))
    return status
