#!/usr/bin/env python3
"""Runs the host packing benchmark with every MPI at hand; prints the table, writes bench/results/host_pack_*.json.

    bench/host_pack.py BUILD_DIRECTORY [--only TEXT] [--processes N] [--samples N] [--no-write]

Every figure is a median; every ratio is taken within one process, where all contestants ran interleaved. A process's
pages share the caches as chance had it, so each row is measured in several processes, and the one with the median
ratio is reported.
"""

import json
import math
import subprocess
import sys

import _arguments
import _launch
from _report import name_for, processor, report

# Rows that fall into few sets of AMD Zen 5's first-level cache, where packing them is not done in any special way.
SET_CONFLICTS = (
    "face Y-Z of 128^3 doubles",
    "halo Y-Z, 2 deep, of 128^3 doubles",
    "vector, 256 B every 16 KiB x 128, int",
)

LAUNCH = {"mpich": ["mpiexec", "-n", "1"], "openmpi": ["mpirun", "-n", "1", "--oversubscribe"]}


def run(build, mpi, arguments):
    prefix = _launch.prefix_of(build, mpi)
    launcher, *options = LAUNCH[mpi]
    environment = _launch.environment(mpi, prefix)
    command = [f"{prefix}/bin/{launcher}", *options, str(build / "bin" / f"host_pack_{mpi}"), *arguments]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    header, *rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return header, rows


def as_row(header, measured):
    library = header["library"]
    rate = {who: measured["bytes"] / measured[who]["median"] / 1e9 for who in ("gapless", "mpi", "loop", "memcpy")}
    case = {
        "layout": measured["layout"],
        "direction": measured["direction"],
        "bytes": measured["bytes"],
        "library": library,
        "engine": header["engine"],
    }
    return {
        "case": case,
        "value": round(rate["gapless"], 3),
        "unit": "GB/s",
        "bound": round(rate["memcpy"], 3),
        "peers": {library: round(rate["mpi"], 3), "hand-written loop": round(rate["loop"], 3)},
    }


def of_best(row):
    """Gapless's speed as a fraction of the best peer's."""
    return row["value"] / max(row["peers"].values())


def least_of_best(row, machine):
    """What is asked of a row."""
    is_conflict = row["case"]["layout"] in SET_CONFLICTS and row["case"]["direction"] == "pack"
    return 0.85 if is_conflict and machine.startswith("AMD") else 0.95


def run_several(build, mpi, arguments, processes):
    """For each row, that of the process with the median ratio."""
    results = [run(build, mpi, arguments) for _ in range(processes)]
    header = results[0][0]
    repeated = zip(*([as_row(header, measured) for measured in rows] for _, rows in results), strict=True)
    return header, [sorted(same, key=of_best)[processes // 2] for same in repeated]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def bars(rows, machine):
    worst_row = min(rows, key=lambda row: of_best(row) / least_of_best(row, machine))
    worst, case = of_best(worst_row), worst_row["case"]
    speedups = {}
    for row in rows:
        key = (row["case"]["layout"], row["case"]["direction"])
        speedups.setdefault(key, []).append(row["value"] / row["peers"][row["case"]["library"]])
    mean = geometric_mean([max(ratios) for ratios in speedups.values()])
    return [
        {
            "name": "host packing, worst row",
            "asks": "never below 0.95 of the best of both libraries and the loop; 0.85 on AMD for packing rows that "
            "fall into few sets of the cache",
            "figure": f"{worst:.2f} ({case['layout']}, {case['direction']})",
            "holds": worst >= least_of_best(worst_row, machine),
        },
        {
            "name": "host packing, overall",
            "asks": "at least 2 times the slower library in geometric mean",
            "figure": f"{mean:.2f}",
            "holds": mean >= 2,
        },
    ]


def print_table(rows, machine):
    print(f"{'layout':52} {'':6} {'GB/s':>8} {'memcpy':>8} {'library':>8} {'loop':>8} {'of best':>8}")
    for row in rows:
        library, loop = row["peers"].values()
        flag = "" if of_best(row) >= least_of_best(row, machine) else "  <--"
        print(
            f"{row['case']['layout']:52} {row['case']['direction']:6} {row['value']:8.2f} {row['bound']:8.2f} "
            f"{library:8.2f} {loop:8.2f} {of_best(row):8.2f}{flag}"
        )


def main():
    parser = _arguments.parser(__doc__, LAUNCH)
    parser.add_argument("--only", default="", help="only layouts whose name contains this")
    parser.add_argument("--processes", type=int, default=5, metavar="N", help="processes a row is measured in (5)")
    parser.add_argument("--samples", default="41")
    options = parser.parse_args()
    rows = []
    for mpi in options.mpi or LAUNCH:
        if not (options.build / "bin" / f"host_pack_{mpi}").exists():
            sys.exit(f"host_pack_{mpi} is not built in {options.build}")
        arguments = [f"--only={options.only}", f"--samples={options.samples}"]
        header, mine = run_several(options.build.resolve(), mpi, arguments, options.processes)
        if not mine:
            sys.exit(f"no layout has {options.only} in its name")
        print(header["library"], "against the", header["engine"], "engine")
        print_table(mine, processor())
        rows += mine
    report(
        "host_pack", rows, bars(rows, processor()), not options.no_write, file_name=name_for("host_pack", processor())
    )


if __name__ == "__main__":
    main()
