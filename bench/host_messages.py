#!/usr/bin/env python3
"""Messages in host memory between two processes of a node, by the library alone, packed, by slots, and as chosen.

    bench/host_messages.py BUILD_DIRECTORY [--mpi NAME] [--processes N] [--samples N] [--no-write]

All ways are timed in turn within one job, a call's time being that of its slower process. A latency is half a round
trip, a bandwidth the time of a message in windows of 32. Each row is measured in several jobs, and the one with the
median ratio is reported, with what half a round trip of 8 bytes by the library took meanwhile ("plain", us): cores of a
virtual machine may be near to each other or far. Writes bench/results/host_messages_*.json, a file for each kind of
processor.
"""

import json
import subprocess
import sys

import _arguments
import _launch
from _report import name_for, processor, report
from host_pack import geometric_mean

LIBRARIES = {"mpich": "MPICH", "openmpi": "Open MPI"}
WAYS = ["native", "packed", "slots", "chosen"]
WORST = 0.97  # of the library, at every point
COLUMNS = {"latency": {"mpich": 5.0, "openmpi": 1.4}, "bandwidth": {"mpich": 5.0, "openmpi": 1.2}}
HALOS = TRANSPOSES = {"mpich": 2.5, "openmpi": 1.15}
CONTIGUOUS = ("latency, plain", "latency, contiguous", "bandwidth, contiguous")
LEAST_COLUMNS_LIKE_CONTIGUOUS = 256
BINDING = {"mpich": ["-bind-to", "core"], "openmpi": ["--bind-to", "core"]}


def run(build, mpi, samples):
    prefix = _launch.prefix_of(build, mpi)
    environment = _launch.environment(mpi, prefix)
    preload = ["env", f"LD_PRELOAD={build}/lib/libgapless.so"]
    program = [str(build / "bin" / f"host_messages_{mpi}"), str(samples)]
    command = [f"{prefix}/bin/mpiexec", "-n", "2", *BINDING[mpi], *preload, *program]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    wrong = [row["case"] for row in rows if row["wrong"]]
    if wrong:
        sys.exit(f"{LIBRARIES[mpi]}: wrong data, or no gapless: {', '.join(wrong)}")
    return rows


def gain(row):
    return row["peers"]["native"] / row["value"]


def as_row(mpi, measured):
    return {
        "case": {"message": measured["case"], "library": mpi, "bytes": measured["bytes"]},
        "value": measured["chosen"],
        "unit": "us",
        "bound": min(measured[way] for way in WAYS),
        "peers": {way: measured[way] for way in WAYS if way != "chosen"},
        "plain": measured["plain"],
    }


def rows_of(build, mpi, processes, samples):
    """For each row, that of the job with the median ratio."""
    runs = [[as_row(mpi, measured) for measured in run(build, mpi, samples)] for _ in range(processes)]
    return [sorted(same, key=gain)[processes // 2] for same in zip(*runs, strict=True)]


def chosen(rows, mpi, kind):
    """Those of a library whose name begins with that, or with one of those."""
    return [row for row in rows if row["case"]["library"] == mpi and row["case"]["message"].startswith(kind)]


def at_least(name, least, rows):
    mean = geometric_mean([gain(row) for row in rows])
    return {
        "name": name,
        "asks": f"at least {least} times the library in the geometric mean",
        "figure": f"{mean:.2f}",
        "holds": mean >= least,
    }


def never_slower(name, rows):
    worst = min(rows, key=gain)
    return {
        "name": name,
        "asks": f"at least {WORST} of the library at every point",
        "figure": f"{gain(worst):.2f} ({worst['case']['message']})",
        "holds": gain(worst) >= WORST,
    }


def like_contiguous(rows, mpi, kind):
    """Columns against contiguous messages of as many bytes by the library."""
    contiguous = {row["case"]["bytes"]: row["peers"]["native"] for row in chosen(rows, mpi, f"{kind}, contiguous")}
    compared = [
        (contiguous[row["case"]["bytes"]] / row["value"], row)
        for row in chosen(rows, mpi, f"{kind}, columns")
        if int(row["case"]["message"].rsplit(" ", 1)[1]) >= LEAST_COLUMNS_LIKE_CONTIGUOUS
    ]
    least, row = min(compared, key=lambda pair: pair[0])
    return {
        "name": f"{kind} of {LEAST_COLUMNS_LIKE_CONTIGUOUS} columns and more, {LIBRARIES[mpi]}",
        "asks": "faster than a contiguous message of the same bytes by the library",
        "figure": f"{least:.2f} ({row['case']['message']})",
        "holds": least > 1,
    }


def bars(rows):
    for mpi in [mpi for mpi in LIBRARIES if chosen(rows, mpi, "")]:
        library = LIBRARIES[mpi]
        for kind, least in COLUMNS.items():
            columns = chosen(rows, mpi, f"{kind}, columns")
            yield at_least(f"{kind} of columns, {library}", least[mpi], columns)
            yield never_slower(f"{kind} of columns, {library}", columns)
            yield like_contiguous(rows, mpi, kind)
        yield never_slower(f"long messages, {library}", chosen(rows, mpi, "latency, blocks"))
        for n in (64, 128):
            for calls in ("Sendrecv", "Isend and Irecv", "Startall"):
                halo = chosen(rows, mpi, f"halo, {calls}, {n}^3")
                yield at_least(f"halos of {n}^3 by {calls}, {library}", HALOS[mpi], halo)
        yield at_least(f"Alltoallw of subarrays, {library}", TRANSPOSES[mpi], chosen(rows, mpi, "Alltoallw"))
        yield never_slower(f"contiguous messages, {library}", chosen(rows, mpi, CONTIGUOUS))


def main():
    parser = _arguments.parser(__doc__, LIBRARIES)
    parser.add_argument("--processes", type=int, default=3, metavar="N", help="jobs a row is measured in (3)")
    parser.add_argument("--samples", type=int, default=15, metavar="N", help="of a way in a job (15)")
    options = parser.parse_args()
    build = options.build.resolve()
    rows = []
    for mpi in options.mpi or LIBRARIES:
        if not (build / "bin" / f"host_messages_{mpi}").exists():
            sys.exit(f"host_messages_{mpi} is not built in {options.build}")
        rows += rows_of(build, mpi, options.processes, options.samples)
    for row in rows:
        case = row["case"]
        times = "".join(f" {way} {row['peers'].get(way, row['value']):10.2f}" for way in WAYS)
        print(f"{case['message']:42} {case['library']:8}{times} us {gain(row):5.2f}  8 bytes {row['plain']:.2f} us")
    name = name_for("host_messages", processor())
    report("host_messages", rows, list(bars(rows)), not options.no_write, file_name=name)


if __name__ == "__main__":
    main()
