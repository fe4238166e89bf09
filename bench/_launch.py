"""Where the MPI libraries are that benchmarks were built for, and the environment that their jobs run in."""

import os
import sys


def prefix_of(build, mpi):
    """Of that build directory; empty where it has none."""
    cache = build / "CMakeCache.txt"
    if not cache.is_file():
        sys.exit(f"{build} is no build directory")
    for line in cache.read_text().splitlines():
        if line.startswith(f"GAPLESS_{mpi.upper()}_PREFIX:"):
            return line.split("=", 1)[1]
    return ""


def environment(mpi, prefix, library_path=(), **settings):
    """For jobs of the library under `prefix`, which may not be where it was installed."""
    made = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **settings)
    if mpi == "openmpi":
        made["OPAL_PREFIX"] = str(prefix)
    paths = [f"{prefix}/lib", *library_path, made.get("LD_LIBRARY_PATH", "")]
    made["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
    return made
