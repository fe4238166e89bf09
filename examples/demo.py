#!/usr/bin/env python3
"""Runs the halo exchange of halo3d.c on each MPI at hand, without gapless and with it, and compares.

The programs are the same files both times. Where the system puts two processes, and what else it does, changes a run
by far more than gapless does, and for seconds. So there are many short runs: all rows of the table take turns, without
and with gapless, until the time is up. A run is long enough for gapless to see what the machine does best. What is
shown of a row is the median over its runs of the fastest exchange, and between which values the middle half of the runs
lies. Exits with 1 if any halo point was ever wrong.
"""

import argparse
import ctypes
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODES = {
    "sendrecv": "26 x MPI_Sendrecv",
    "isend": "26 x Irecv, Isend; Waitall",
    "persistent": "Startall, Waitall",
    "pack": "Pack, Alltoallv, Unpack",
    "neighbor": "MPI_Neighbor_alltoallw",
}
CHOICE = re.compile(r"(?P<scheme>[\w-]+) (?P<messages>\d+) messages? (?P<bytes>\d+) B")
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
    if any(line.startswith("gapless: rank") and line.endswith(": no messages") for line in lines):
        return "no messages: all were left to the library"
    if line is None:
        return next((line for line in lines if line.startswith("gapless")), "gapless was not in use")
    chosen = [match for match in CHOICE.finditer(line) if match["messages"] != "0"]
    return ", ".join(f"{match['scheme']}: {match['messages']} messages, {match['bytes']} B" for match in chosen)


def middle(values: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, median, upper


def shown(values: list[float]) -> str:
    lower, median, upper = middle(values)
    return f"{median:.0f} us ({lower:.0f}-{upper:.0f})"


def gpu_is_present() -> bool:
    """Asks the driver: containers may have the device files and no GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


@dataclass
class Row:
    """One line of the table: an exchange on an MPI, run without and with gapless in turn."""

    mpi: Mpi
    what: str
    ranks: int
    options: list[str]
    counted: Run | None = None
    plain: list[Run] = field(default_factory=list)
    ours: list[Run] = field(default_factory=list)

    def count(self) -> None:
        """Counting takes time, so it has a run of its own."""
        self.counted = execute(self.mpi, self.ranks, self.options, [*GAPLESS, "--statistics"])

    def take_turn(self) -> None:
        """Each goes first every other time."""
        order = [(self.plain, []), (self.ours, GAPLESS)]
        for runs, gapless in reversed(order) if len(self.plain) % 2 else order:
            runs.append(execute(self.mpi, self.ranks, self.options, gapless))

    def is_right(self) -> bool:
        """Every run with gapless ended well and had every halo point right, and gapless was in use."""
        in_use = re.match(r"\w+: \d+ messages|no messages", choices_of(self.counted)) is not None
        return in_use and all(run.microseconds is not None and run.verified for run in [self.counted, *self.ours])

    def show(self) -> None:
        print_line(self.mpi.name, self.what, *([run.microseconds for run in runs] for runs in (self.plain, self.ours)))
        if all(run.packing for run in self.plain + self.ours):
            packing = ([run.packing for run in runs] for runs in (self.plain, self.ours))
            print_line("", "  of which packing", *packing)
        wrong = sum(not run.verified for run in self.plain)
        print(f"    {choices_of(self.counted)}" + (f"; WRONG without gapless in {wrong} runs" if wrong else ""))


def print_line(name: str, what: str, without: list[float | None], with_gapless: list[float | None]) -> None:
    cells = ["fails" if None in values else shown(values) for values in (without, with_gapless)]
    ratio = ""
    if "fails" not in cells:
        ratio = f"{statistics.median(without) / statistics.median(with_gapless):.2f} x"
    print(f"{name:<17} {what:<28} {cells[0]:>22} {cells[1]:>22} {ratio:>8}")


LEAST_TURNS = 3


def measure(rows: list[Row], seconds: float, most: int) -> int:
    """How many turns each row had: for so many seconds, and at least as many as a median needs, but never more than
    `most`. A row that failed is not run again."""
    began = time.monotonic()
    for row in rows:
        row.count()
    counted = time.monotonic()
    for turn in range(most):
        now = time.monotonic()
        if turn >= LEAST_TURNS and now - began + (now - counted) / turn > seconds:
            return turn
        for row in rows:
            if not any(run.microseconds is None for run in row.plain + row.ours):
                row.take_turn()
        if sys.stderr.isatty():
            print(f"\rturn {turn + 1}, {time.monotonic() - began:.0f} s of {seconds:.0f}", end=" ", file=sys.stderr)
    return most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/default/bin", help="where halo3d-* were built")
    parser.add_argument("--ranks", type=int, default=min(4, max(2, os.cpu_count() or 2)))
    parser.add_argument("--size", type=int, default=64, help="points per dimension and rank")
    parser.add_argument("--radius", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=90, help="how long to go on")
    parser.add_argument("--turns", type=int, default=1000, help="the most runs of each kind")
    parser.add_argument("--gpu-is-present", action="store_true", help="only exit with 0 if there is a GPU, else with 1")
    arguments = parser.parse_args()
    if arguments.gpu_is_present:
        return 0 if gpu_is_present() else 1

    mpis = available(arguments.binaries)
    if not mpis:
        print("demo: no halo3d program was built; run `make`", file=sys.stderr)
        return 1
    size = ["--size", str(arguments.size), "--radius", str(arguments.radius), "--iterations", str(arguments.iterations)]
    places = {"": [], ", GPU": ["--device"]} if gpu_is_present() else {"": []}
    rows = [
        Row(mpi, what + place, arguments.ranks, [*size, "--mode", mode, *options])
        for mpi in mpis
        for mode, what in MODES.items()
        for place, options in places.items()
    ]
    print(
        f"3-D halo exchange, {arguments.ranks} ranks of {arguments.size}^3 doubles, radius {arguments.radius}, "
        f"26 neighbours, every halo point checked.\nRuns without and with gapless take turns for "
        f"{arguments.seconds:.0f} seconds, {LEAST_TURNS} times at least.\n",
        flush=True,
    )
    turns = measure(rows, arguments.seconds, arguments.turns)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(
        f"The fastest exchange of a run: median of {turns} runs (and their quartiles); below it, what gapless chose.\n"
    )
    print(f"{'MPI':<17} {'exchange':<28} {'without':>22} {'with':>22} {'faster':>8}")
    for row in rows:
        row.show()
    if not gpu_is_present():
        print("\nThere is no GPU here, so no exchange of GPU memory was run.")
    right = all(row.is_right() for row in rows)
    print("\nEvery halo point was right." if right else "\nWrong data, a program that failed, or gapless was off.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
