#!/usr/bin/env python3
"""DDTBench: messages of seven applications, by datatypes and packed by hand, with gapless and by the library alone.

    bench/ddtbench.py BUILD_DIRECTORY --programs DIR [--mpi NAME] [--rounds N] [--no-write]

DDTBench (T. Schneider, R. Gerstenberger, T. Hoefler: Micro-Applications for Communication Data Access Patterns and MPI
Datatypes, EuroMPI 2012) is no part of gapless. `--programs DIR` has its C version as it was compiled for each library:
DIR/ddtbench_mpich, DIR/ddtbench_openmpi. Two processes send each pattern to and fro; each datatype is used 20 times and
made anew, five times. Jobs with gapless and without take turns. A time is that of both ways: the median in a job, and
of the rounds. DDTBench does not check the bytes that arrive. Writes a result for each kind of machine.
"""

import collections
import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile

import _arguments
import _launch
from _report import name_for, processor, ratio_text, report

LIBRARIES = ("mpich", "openmpi")
BIND = {"mpich": ["-bind-to", "core"], "openmpi": ["--bind-to", "core"]}
MOST_SECONDS = 300  # of a job
OUTER, INNER = 5, 20  # datatypes of a pattern, and uses of each: DDTBench itself makes ten datatypes
LEAST_OF_LIBRARY = 0.97
PHASES = ("pack", "communication", "unpack")  # of a message; the others are a datatype's beginning and end
CONTIGUOUS, BY_HAND, LIBRARY = "contiguous", "packed by hand", "the library's datatypes"
PEERS = {CONTIGUOUS: "reference", BY_HAND: "manual", LIBRARY: "mpi_ddt"}


def times_of(lines):
    """Microseconds by (pattern, bytes, DDTBench's method): sums of the medians of a message's phases."""
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in itertools.islice(lines, 1, None):
        pattern, method, size, phase, microseconds, *_ = line.split()
        if phase in PHASES:
            samples[pattern, int(size), method][phase].append(float(microseconds))
    return {key: sum(map(statistics.median, phases.values())) for key, phases in samples.items()}


def run(build, mpi, programs, preloads):
    prefix = _launch.prefix_of(build, mpi)
    settings = [f"LD_PRELOAD={build}/lib/libgapless.so", "GAPLESS_ALL_RANKS=1"] if preloads else []
    program = [str(programs / f"ddtbench_{mpi}"), str(OUTER), str(INNER)]
    command = [f"{prefix}/bin/mpiexec", "-n", "2", *BIND[mpi], "env", *settings, *program]
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(
            command,
            cwd=place,
            env=_launch.environment(mpi, prefix),
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=MOST_SECONDS,
        )
        return times_of((pathlib.Path(place) / "ddtbench.out").read_text().splitlines())


def rows_of(mpi, alone, gapless):
    """A row for each pattern and size; `alone` and `gapless` are the times of each job."""

    def median(jobs, pattern, size, method):
        return round(statistics.median(job[pattern, size, method] for job in jobs), 3)

    for pattern, size, method in alone[0]:
        if method != "mpi_ddt":
            continue
        yield {
            "case": {"library": mpi, "pattern": pattern, "bytes": size},
            "value": median(gapless, pattern, size, method),
            "unit": "us",
            "peers": {name: median(alone, pattern, size, theirs) for name, theirs in PEERS.items()},
        }


def bars(rows):
    for mpi in LIBRARIES:
        mine = [row for row in rows if row["case"]["library"] == mpi]
        if not mine:
            continue
        over_hand = statistics.geometric_mean(row["peers"][BY_HAND] / row["value"] for row in mine)
        yield {
            "name": f"datatypes of applications, {mpi}",
            "asks": "at least as fast as packing by hand in the geometric mean",
            "figure": f"{over_hand:.2f} times as fast",
            "holds": over_hand >= 1,
        }
        worst = min(mine, key=lambda row: row["peers"][LIBRARY] / row["value"])
        ratio, case = worst["peers"][LIBRARY] / worst["value"], worst["case"]
        yield {
            "name": f"datatypes of applications, {mpi}",
            "asks": f"at least {LEAST_OF_LIBRARY} times the speed of the library alone at every point",
            "figure": f"{ratio_text(ratio, LEAST_OF_LIBRARY)} ({case['pattern']}, {case['bytes']} B)",
            "holds": ratio >= LEAST_OF_LIBRARY,
        }


def main():
    parser = _arguments.parser(__doc__, LIBRARIES)
    parser.add_argument("--programs", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="jobs of each way, in turn (3)")
    options = parser.parse_args()
    build, programs = options.build.resolve(), options.programs.resolve()
    rows = []
    for mpi in options.mpi or LIBRARIES:
        if not (programs / f"ddtbench_{mpi}").exists():
            sys.exit(f"{options.programs} has no ddtbench_{mpi}")
        jobs = {preloads: [] for preloads in (False, True)}
        for _ in range(options.rounds):
            for preloads, measured in jobs.items():
                measured.append(run(build, mpi, programs, preloads))
        rows += rows_of(mpi, jobs[False], jobs[True])
    for row in rows:
        case, peers = row["case"], row["peers"]
        theirs = "  ".join(f"{name} {time:9.1f}" for name, time in peers.items())
        print(f"{case['library']:8} {case['pattern']:14} {case['bytes']:9} B  gapless {row['value']:9.1f} us  {theirs}")
    report("ddtbench", rows, list(bars(rows)), not options.no_write, file_name=name_for("ddtbench", processor()))


if __name__ == "__main__":
    main()
