"""Loads one MPI library, and libgapless.so beside it, and prints what they say as JSON. Started by `gapless info`."""

import ctypes
import json
import sys


def mpi_version(mpi: ctypes.CDLL) -> str:
    """The library's own description; the standard allows asking before MPI_Init."""
    text, length = ctypes.create_string_buffer(16384), ctypes.c_int()
    mpi.MPI_Get_library_version(text, ctypes.byref(length))
    return text.value.decode(errors="replace").strip()


def first_line(text: str) -> str:
    return " ".join(text.splitlines()[0].split())


def shim_report(path: str) -> dict[str, str]:
    """What libgapless.so would do for the MPI library in this process: lines of key=value."""
    shim = ctypes.CDLL(path)
    shim.gapless_shim_report.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(65536)
    shim.gapless_shim_report(text, ctypes.c_size_t(len(text)))
    return dict(line.split("=", 1) for line in text.value.decode(errors="replace").splitlines() if "=" in line)


def main(mpi_path: str, shim_path: str) -> None:
    mpi = ctypes.CDLL(mpi_path, mode=ctypes.RTLD_GLOBAL)
    text = mpi_version(mpi)
    print(
        json.dumps(
            {"version": first_line(text), "version_text": text, "shim": shim_report(shim_path) if shim_path else {}}
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
