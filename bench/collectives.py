#!/usr/bin/env python3
"""Collectives of noncontiguous host memory: MPI_Alltoallw of subarrays as distributed FFTs transpose, and the halos of
grids by MPI_Neighbor_alltoallw, with gapless and by the MPI library alone.

    bench/collectives.py BUILD_DIRECTORY [--mpi NAME] [--ranks N] [--processes N] [--no-write]

Both are timed in turn within one job, a call's time being that of its slowest rank. Each row is measured in several
jobs, and the one with the median ratio is reported. Writes bench/results/collectives.json.
"""

import json
import subprocess
import sys

import _arguments
import _launch
from _report import ratio_text, report
from host_pack import geometric_mean

LEAST_GAIN = {"mpich": 2.0, "openmpi": 1.0}
NOISE = 1.05  # of what is left to the library


def run(build, mpi, ranks):
    prefix = _launch.prefix_of(build, mpi)
    environment = _launch.environment(mpi, prefix)
    oversubscribe = ["--oversubscribe"] if mpi == "openmpi" else []
    preload = ["env", f"LD_PRELOAD={build}/lib/libgapless.so"]
    program = str(build / "bin" / f"collectives_{mpi}")
    command = [f"{prefix}/bin/mpiexec", "-n", str(ranks), *oversubscribe, *preload, program]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    wrong = [row["case"] for row in rows if row.get("wrong")]
    if wrong:
        sys.exit(f"wrong data, or no gapless: {', '.join(wrong)}")
    return rows


def gain(row):
    return row["bound"] / row["value"]


def as_row(mpi, ranks, measured):
    return {
        "case": {"exchange": measured["case"], "library": mpi, "ranks": ranks, "bytes": measured["bytes"]},
        "value": measured["gapless_us"],
        "unit": "us",
        "bound": measured["native_us"],
        "peers": {"the library alone": measured["native_us"]},
    }


def rows_of(build, mpi, ranks, processes):
    """For each row, that of the job with the median ratio."""
    runs = [[as_row(mpi, ranks, measured) for measured in run(build, mpi, ranks)] for _ in range(processes)]
    return [sorted(same, key=gain)[processes // 2] for same in zip(*runs, strict=True)]


def bars(rows):
    for mpi, least in LEAST_GAIN.items():
        mine = [row for row in rows if row["case"]["library"] == mpi]
        if not mine:
            continue
        mean = geometric_mean([gain(row) for row in mine if not row["case"]["exchange"].startswith("halo")])
        worst = min(mine, key=gain)
        yield {
            "name": f"Alltoallw of subarrays, {mpi}",
            "asks": f"at least {least} times the library in the geometric mean",
            "figure": f"{mean:.2f}",
            "holds": mean >= least,
        }
        yield {
            "name": f"every exchange, {mpi}",
            "asks": f"at most {NOISE} times the library's time",
            "figure": f"{ratio_text(1 / gain(worst), NOISE)} ({worst['case']['exchange']})",
            "holds": gain(worst) * NOISE >= 1,
        }


def main():
    parser = _arguments.parser(__doc__, LEAST_GAIN)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--processes", type=int, default=3, metavar="N", help="jobs a row is measured in (3)")
    options = parser.parse_args()
    build = options.build.resolve()
    rows = []
    for mpi in options.mpi or LEAST_GAIN:
        if not (build / "bin" / f"collectives_{mpi}").exists():
            sys.exit(f"collectives_{mpi} is not built in {options.build}")
        rows += rows_of(build, mpi, options.ranks, options.processes)
    for row in rows:
        case = row["case"]
        print(
            f"{case['exchange']:42} {case['library']:8} {row['value']:10.2f} us"
            f"  the library {row['bound']:10.2f} us  {gain(row):5.2f}"
        )
    report("collectives", rows, list(bars(rows)), not options.no_write)


if __name__ == "__main__":
    main()
