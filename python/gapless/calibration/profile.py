"""Profiles: where they are, whether they can be used, and how they are written (src/model/profile_file.hpp)."""

import contextlib
import ctypes
import json
import os
from pathlib import Path

from gapless import locate

VERSION = 1
BUILT_IN = "built-in"


def _text_of(function: str, *arguments: str) -> str:
    called = getattr(ctypes.CDLL(str(locate.require(locate.CORE))), function)
    called.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(65536)
    called(*(argument.encode() for argument in arguments), text, ctypes.c_size_t(len(text)))
    return text.value.decode(errors="replace")


def library_name(version_text: str) -> str:
    """ "MPICH 5.0.2", from what MPI_Get_library_version says."""
    return _text_of("gapless_profile_library", version_text)


def path_for(library: str) -> str:
    """Where the profile of a library is looked for: a path, BUILT_IN, or nothing."""
    return _text_of("gapless_profile_path", library)


def fault(path: str | Path, library: str) -> str:
    """Why programs of that library on this machine would ignore the file; empty if they use it."""
    return _text_of("gapless_profile_fault", str(path), library)


def gpu_name() -> str | None:
    """The first GPU of this machine, as its driver lists it."""
    for information in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with contextlib.suppress(OSError):
            for line in information.read_text().splitlines():
                if line.startswith("Model:"):
                    return line.removeprefix("Model:").strip()
    return None


def in_use(library: str) -> str:
    """Which profile a program of that library takes, in words."""
    path = path_for(library)
    if path in ("", BUILT_IN) or (not Path(path).exists() and "GAPLESS_PROFILE" not in os.environ):
        return BUILT_IN
    why = fault(path, library)
    return f"{BUILT_IN}; {path} is ignored: {why}" if why else path


def unfinished(path: Path) -> Path:
    """Where a calibration keeps what it has measured until the profile is written."""
    return path.with_name(path.name + ".part")


def write(path: Path, content: dict) -> None:
    """All of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(content) + "\n")
    beside.replace(path)
