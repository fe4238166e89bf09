#!/usr/bin/env python3
"""Runs the halo exchange of halo3d.c on each MPI at hand, without gapless and with it, and compares.

The programs are the same files both times. Runs without and with gapless take turns, and the median of the runs'
fastest exchanges is shown: where the system puts two processes, and what else it does, changes a run by far more than
gapless does. Exits with 1 if any halo point was ever wrong.
"""

import argparse
import ctypes
import os
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODES = {"sendrecv": "26 x MPI_Sendrecv", "pack": "Pack, Alltoallv, Unpack"}
CHOICE = re.compile(r"(?P<scheme>\w+) (?P<messages>\d+) messages? (?P<bytes>\d+) B")
GAPLESS = [sys.executable, str(ROOT / "bin/gapless"), "run"]
CUDA_LIBRARIES = "/usr/local/cuda/lib64"


@dataclass
class Run:
    microseconds: float | None  # the fastest exchange; None: the program did not end well
    verified: bool
    stderr: str
    packing: float = 0  # microseconds of the fastest packing and unpacking that the program did itself


@dataclass
class Mpi:
    name: str
    launcher: list[str]
    program: Path


def available(binaries: Path) -> list[Mpi]:
    oversubscribe = ["--oversubscribe"]
    candidates = [
        Mpi("MPICH", [str(ROOT / "build/mpich/bin/mpiexec")], binaries / "halo3d-mpich"),
        Mpi("MPI standard ABI", [str(ROOT / "build/mpich/bin/mpiexec")], binaries / "halo3d-abi"),
        Mpi("Open MPI", [str(ROOT / "build/openmpi/bin/mpirun"), *oversubscribe], binaries / "halo3d-openmpi"),
    ]
    return [mpi for mpi in candidates if mpi.program.is_file() and Path(mpi.launcher[0]).is_file()]


def settings_for(mpi: Mpi) -> dict[str, str]:
    """Open MPI refuses to run as root, as containers do, unless told; libcudart is opened by name."""
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "GAPLESS_LIBRARY_DIRECTORY": str(mpi.program.parent.parent / "lib"),
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), CUDA_LIBRARIES])),
    }


def execute(mpi: Mpi, ranks: int, options: list[str], gapless: list[str]) -> Run:
    command = [*gapless, *mpi.launcher, "-n", str(ranks), str(mpi.program), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=settings_for(mpi), timeout=300)
    except subprocess.TimeoutExpired:
        return Run(None, False, "")
    line = re.search(r"^halo3d .*min_us=(\S+) packing_us=(\S+) verified=(\S+)", done.stdout, re.MULTILINE)
    if line is None or done.returncode != 0:
        return Run(None, line is not None and line[3] != "wrong", done.stderr.strip())
    return Run(float(line[1]), line[3] == "yes", done.stderr, float(line[2]))


def choices_of(run: Run) -> str:
    """The first statistics line, without what was never chosen; every rank of a periodic exchange does the same."""
    lines = run.stderr.splitlines()
    line = next((line for line in lines if CHOICE.search(line)), None)
    if line is None:
        return next((line for line in lines if line.startswith("gapless")), "gapless was not in use")
    chosen = [match for match in CHOICE.finditer(line) if match["messages"] != "0"]
    return ", ".join(f"{match['scheme']}: {match['messages']} messages, {match['bytes']} B" for match in chosen)


def typical(runs: list[Run]) -> Run:
    """The first that failed, if one did."""
    for run in runs:
        if run.microseconds is None:
            return run
    return Run(
        statistics.median(run.microseconds for run in runs),
        all(run.verified for run in runs),
        "",
        statistics.median(run.packing for run in runs),
    )


def shown(run: Run) -> str:
    if run.microseconds is None:
        return "fails"
    return f"{run.microseconds:.0f} us" + ("" if run.verified else " WRONG")


def gpu_is_present() -> bool:
    """Asks the driver: containers may have the device files and no GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def take_turns(mpi: Mpi, ranks: int, options: list[str], repetitions: int) -> tuple[list[Run], list[Run]]:
    """Runs without and with gapless; each goes first every other time."""
    plain, ours = [], []
    for repetition in range(repetitions):
        for runs, gapless in [(plain, []), (ours, GAPLESS)][:: -1 if repetition % 2 else 1]:
            runs.append(execute(mpi, ranks, options, gapless))
    return plain, ours


def print_row(name: str, what: str, without: Run, with_gapless: Run) -> None:
    ratio = ""
    if without.microseconds and with_gapless.microseconds:
        ratio = f"{without.microseconds / with_gapless.microseconds:.2f} x"
    print(f"{name:<17} {what:<28} {shown(without):>10} {shown(with_gapless):>10} {ratio:>8}")


def compare(mpi: Mpi, what: str, ranks: int, options: list[str], repetitions: int) -> bool:
    """Prints one row of the table; true if every halo point was right with gapless."""
    counted = execute(mpi, ranks, options, [*GAPLESS, "--statistics"])  # counting takes time, so in a run of its own
    plain, ours = take_turns(mpi, ranks, options, repetitions)
    without, with_gapless = typical(plain), typical(ours)
    print_row(mpi.name, what, without, with_gapless)
    if without.packing and with_gapless.packing:
        alone = [replace(run, microseconds=run.packing) for run in (without, with_gapless)]
        print_row("", "  of which packing", *alone)
    choices = choices_of(counted)
    print(f"    {choices}")
    in_use = re.match(r"\w+: \d+ messages", choices) is not None
    return typical([counted, *ours]).microseconds is not None and counted.verified and with_gapless.verified and in_use


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/default/bin", help="where halo3d-* were built")
    parser.add_argument("--ranks", type=int, default=min(4, max(2, os.cpu_count() or 2)))
    parser.add_argument("--size", type=int, default=64, help="points per dimension and rank")
    parser.add_argument("--radius", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=9)
    arguments = parser.parse_args()

    mpis = available(arguments.binaries)
    if not mpis:
        print("demo: no halo3d program was built; run `make`", file=sys.stderr)
        return 1
    size = ["--size", str(arguments.size), "--radius", str(arguments.radius), "--iterations", str(arguments.iterations)]
    print(
        f"3-D halo exchange, {arguments.ranks} ranks of {arguments.size}^3 doubles, radius {arguments.radius}, "
        f"26 neighbours, every halo point checked.\nThe fastest exchange of a run, median of {arguments.repetitions} "
        f"runs without and with gapless in turn; below it, what gapless chose.\n"
    )
    print(f"{'MPI':<17} {'exchange':<28} {'without':>10} {'with':>10} {'faster':>8}")
    right = True
    for mpi in mpis:
        for mode, what in MODES.items():
            options = [*size, "--mode", mode]
            right &= compare(mpi, what, arguments.ranks, options, arguments.repetitions)
            if gpu_is_present():
                right &= compare(mpi, what + ", GPU", arguments.ranks, [*options, "--device"], 1)
    if not gpu_is_present():
        print("\nThere is no GPU here, so no exchange of GPU memory was run.")
    print("\nEvery halo point was right." if right else "\nWrong data, a program that failed, or gapless was off.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
