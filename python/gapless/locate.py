"""Finds gapless's own libraries: where they were installed, or in the build directory of a checkout."""

import os
from pathlib import Path

from gapless.errors import UserError

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent.parent  # holds bin/, build/ and bench/ where the package is not installed

SHIM = "libgapless.so"
CORE = "libgapless-core.so"
PLUGIN = "libgapless-cuda.so"


def is_checkout() -> bool:
    return (CHECKOUT / "CMakePresets.json").is_file()


def library_directories() -> list[Path]:
    """Where libraries may be, best first."""
    forced = os.environ.get("GAPLESS_LIBRARY_DIRECTORY")
    if forced:
        return [Path(forced)]
    if is_checkout():
        return [CHECKOUT / "build" / "default" / "lib", CHECKOUT / "build" / "release" / "lib"]
    # Installed by pip the package holds the libraries; by CMake it is PREFIX/share/gapless/python/gapless.
    return [PACKAGE / "lib", PACKAGE.parent.parent.parent.parent / "lib"]


def find(name: str) -> Path | None:
    for directory in library_directories():
        if (directory / name).is_file():
            return (directory / name).resolve()
    return None


def not_found(name: str) -> str:
    return f"{name} was not found in {', '.join(map(str, library_directories()))}"


def require(name: str) -> Path:
    path = find(name)
    if path is None:
        if os.environ.get("GAPLESS_LIBRARY_DIRECTORY"):
            mend = "GAPLESS_LIBRARY_DIRECTORY is not the directory of gapless's libraries"
        elif is_checkout():
            mend = "build it with `make`, or set GAPLESS_LIBRARY_DIRECTORY"
        else:
            mend = "install gapless again, or set GAPLESS_LIBRARY_DIRECTORY"
        raise UserError(f"{not_found(name)}; {mend}")
    return path
