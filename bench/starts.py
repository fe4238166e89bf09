#!/usr/bin/env python3
"""What gapless costs a job before it gains anything: processor time and memory of a process from its start to the
end of MPI_Init, and of its first noncontiguous message, of 8 KiB, to each process of the job.

    bench/starts.py BUILD_DIRECTORY [--mpi NAME] [--ranks N ...] [--rounds N] [--no-write]

Jobs with gapless and without take turns; reported is the median of the rounds. Memory that processes share is counted
in shares. Processes that wait for each other use the processor, so their first messages are compared with those of the
library alone. Writes bench/results/starts.json.
"""

import json
import statistics
import subprocess
import sys

import _arguments
import _launch
from _report import report

LIBRARIES = ("mpich", "openmpi")
LAUNCH = {"mpich": [], "openmpi": ["--oversubscribe"]}
MOST_MS = 10  # of a process, for MPI_Init
MOST_MIB = 8  # of a process: a segment of 2 MiB, messages under way with all processes of the job, gapless itself


def run(build, mpi, ranks, preloads):
    prefix = _launch.prefix_of(build, mpi)
    settings = [f"LD_PRELOAD={build}/lib/libgapless.so", "GAPLESS_ALL_RANKS=1"] if preloads else []
    program = [f"{prefix}/bin/mpiexec", "-n", str(ranks), *LAUNCH[mpi], "env", *settings]
    output = subprocess.run(
        [*program, str(build / "bin" / f"starts_{mpi}")],
        env=_launch.environment(mpi, prefix, OMPI_MCA_mpi_yield_when_idle="1"),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if any("wrong" in line for line in lines) or len(lines) != 2:
        sys.exit(f"wrong data of {mpi}: {output}")
    return {(line["moment"], unit): line[unit] for line in lines for unit in ("ms", "MiB")}


def rows_of(build, mpi, ranks, rounds):
    jobs = {preloads: [] for preloads in (False, True)}
    for _ in range(rounds):
        for preloads, measured in jobs.items():
            measured.append(run(build, mpi, ranks, preloads))
    for key in jobs[True][0]:
        alone, gapless = (statistics.median(each[key] for each in jobs[preloads]) for preloads in (False, True))
        moment, unit = key
        yield {
            "case": {"library": mpi, "ranks": ranks, "moment": moment},
            "value": gapless,
            "unit": unit,
            "bound": alone,
            "peers": {"the library alone": alone},
        }


def bars(rows):
    for mpi in LIBRARIES:
        for name, moment, unit, most in (
            ("MPI_Init", "MPI_Init", "ms", MOST_MS),
            ("memory, first messages included", "first messages", "MiB", MOST_MIB),
        ):
            mine = [
                row
                for row in rows
                if row["case"]["library"] == mpi and row["case"]["moment"] == moment and row["unit"] == unit
            ]
            if not mine:
                continue
            worst = max(mine, key=lambda row: row["value"] - row["bound"])
            more = worst["value"] - worst["bound"]
            yield {
                "name": f"{name}, {mpi}",
                "asks": f"at most {most} {unit} more a process",
                "figure": f"{more:.1f} {unit} ({worst['case']['ranks']} processes)",
                "holds": more <= most,
            }


def main():
    parser = _arguments.parser(__doc__, LIBRARIES)
    parser.add_argument("--ranks", type=int, action="append", help="processes of a job (2 and 16)")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="jobs a row is measured in, each way (7)")
    options = parser.parse_args()
    build = options.build.resolve()
    rows = []
    for mpi in options.mpi or LIBRARIES:
        if not (build / "bin" / f"starts_{mpi}").exists():
            sys.exit(f"starts_{mpi} is not built in {options.build}")
        for ranks in options.ranks or (2, 16):
            rows += rows_of(build, mpi, ranks, options.rounds)
    for row in rows:
        case = row["case"]
        print(
            f"{case['library']:8} {case['ranks']:4} processes  {case['moment']:15} {row['value']:9.2f} {row['unit']:4}"
            f"  the library alone {row['bound']:9.2f}"
        )
    report("starts", rows, list(bars(rows)), not options.no_write)


if __name__ == "__main__":
    main()
