"""The arguments that every benchmark takes."""

import argparse
import pathlib


def parser(documentation, mpis=()):
    """A parser with the build directory and --no-write, and --mpi where there are several libraries to measure with."""
    made = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("build", type=pathlib.Path, metavar="BUILD_DIRECTORY", help="`gapless bench` gives it itself")
    if mpis:
        made.add_argument("--mpi", choices=sorted(mpis), action="append", help="only with this MPI")
    made.add_argument("--no-write", action="store_true", help="print only, and leave bench/results as it is")
    return made
