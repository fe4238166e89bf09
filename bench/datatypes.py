#!/usr/bin/env python3
"""What datatypes cost that live shortly, and huge ones: with gapless and with the MPI library alone.

    bench/datatypes.py BUILD_DIRECTORY [--only TEXT] [--mpi NAME] [--processes N] [--no-write]

Each type is made, used by MPI_Pack 1, 10 or 100 times and freed, through the program's names and through the library's
own in turn, in one process. Small types are timed over their whole life; of huge ones, which the library takes longer
to make than to use, the uses and MPI_Type_free are. Small types are measured in several processes, and the one with the
median ratio is reported. In further processes gapless is made to analyse each type at its first use, which is timed
against the second. Times are those that the thread itself has run, so other programs of the machine hardly count.
Writes bench/results/types.json.
"""

import json
import subprocess
import sys

import _arguments
import _launch
from _report import report
from host_pack import LAUNCH, geometric_mean


def run(build, mpi, only, *arguments, **settings):
    prefix = _launch.prefix_of(build, mpi)
    launcher, *options = LAUNCH[mpi]
    environment = _launch.environment(mpi, prefix, **settings)
    preload = ["env", f"LD_PRELOAD={build}/lib/libgapless.so"]
    program = [str(build / "bin" / f"datatypes_{mpi}"), "--only", only, *arguments]
    command = [f"{prefix}/bin/{launcher}", *options, *preload, *program]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert all(row["interposed"] for row in rows), "gapless was not preloaded"
    return rows


def ratio(row):
    return row["value"] / row["bound"]


def as_row(mpi, measured):
    case = {"type": measured["type"], "uses": measured["uses"], "library": mpi, "blocks": measured["blocks"]}
    row = {
        "case": case,
        "value": round(measured["gapless_us"], 3),
        "unit": "us",
        "bound": round(measured["native_us"], 3),
        "peers": {"the library alone": round(measured["native_us"], 3)},
    }
    if not measured["huge"]:
        case["MPI_Type_free, us more"] = round(measured["gapless_free_us"] - measured["native_free_us"], 4)
    return row


def analysis_rows(build, mpi, only, kind, processes):
    arguments = ("--kind", kind, "--analysis", "yes")
    runs = [run(build, mpi, only, *arguments, GAPLESS_SCHEME="packed") for _ in range(processes)]
    for same in zip(*runs, strict=True):
        usual = sorted(same, key=lambda measured: measured["analysis_us"])[processes // 2]
        case = {"type": usual["type"], "analysis": True, "library": mpi, "blocks": usual["blocks"]}
        if usual["huge"]:
            case["ns a block"] = round(usual["analysis_us"] * 1000 / usual["blocks"], 1)
            case["memory, in lists"] = round(max(row["memory"] for row in same) / usual["list_bytes"], 2)
        yield {"case": case, "value": round(usual["analysis_us"], 3), "unit": "us", "bound": 0, "peers": {}}


def rows_of(build, mpi, only, kind, processes):
    """For each row, that of the process with the median ratio."""
    runs = [[as_row(mpi, measured) for measured in run(build, mpi, only, "--kind", kind)] for _ in range(processes)]
    return [sorted(same, key=ratio)[processes // 2] for same in zip(*runs, strict=True)]


def worst_of(rows, value):
    worst = max(rows, key=value)
    return value(worst), f"{worst['case']['type']}, {worst['case']['library']}, {worst['case']['uses']} uses"


def bar(name, asks, figure, where, unit, limit):
    return {"name": name, "asks": asks, "figure": f"{figure:.3g}{unit} ({where})", "holds": figure <= limit}


def analysis_bars(rows):
    huge = [row for row in rows if "ns a block" in row["case"]]
    small = [row for row in rows if "ns a block" not in row["case"]]
    if huge:
        worst = max(huge, key=lambda row: row["case"]["ns a block"])["case"]
        where = f"{worst['type']}, {worst['library']}"
        yield bar("analysis of lists", "at most 40 ns a block", worst["ns a block"], where, " ns", 40)
        worst = max(huge, key=lambda row: row["case"]["memory, in lists"])["case"]
        where = f"{worst['type']}, {worst['library']}"
        asks = "at most twice the arrays that the type was made from"
        yield bar("memory of the analysis of lists", asks, worst["memory, in lists"], where, "", 2)
    if small:
        worst = max(small, key=lambda row: row["value"])
        where = f"{worst['case']['type']}, {worst['case']['library']}"
        yield bar(
            "analysis of small datatypes",
            "at most 5 us, or 40 ns a block",
            worst["value"],
            where,
            " us",
            limit_us(worst),
        )


def limit_us(row):
    return max(5, 0.04 * row["case"]["blocks"])


def bars(rows):
    used = [row for row in rows if "uses" in row["case"]]
    once, once_where = worst_of([row for row in used if row["case"]["uses"] == 1], ratio)
    ten = geometric_mean([ratio(row) for row in used if row["case"]["uses"] == 10])
    small = [row for row in used if "MPI_Type_free, us more" in row["case"]]
    yield bar("datatypes used once", "at most 1.1 times native in every row", once, once_where, "", 1.1)
    yield bar("datatypes used ten times", "at most native", ten, "geometric mean", "", 1.0)
    if small:
        free, where = worst_of(small, lambda row: row["case"]["MPI_Type_free, us more"])
        yield bar("MPI_Type_free", "at most 0.1 us more", free, where, " us", 0.1)
    yield from analysis_bars([row for row in rows if "analysis" in row["case"]])


def print_table(rows):
    print(f"{'type':34} {'uses':>8} {'library':8} {'gapless us':>13} {'native us':>13} {'ratio':>6}")
    for row in rows:
        case = row["case"]
        more = {key: case[key] for key in ("memory, in lists", "ns a block", "MPI_Type_free, us more") if key in case}
        native = f"{row['bound']:13.3f} {ratio(row):6.2f}" if row["bound"] else f"{'':20}"
        uses = case.get("uses", "analysis")
        print(f"{case['type']:34} {uses:>8} {case['library']:8} {row['value']:13.3f} {native}  {more}")


def main():
    parser = _arguments.parser(__doc__, LAUNCH)
    parser.add_argument("--only", default="", help="only types whose name contains this")
    parser.add_argument(
        "--processes", type=int, default=3, metavar="N", help="processes a small type is measured in (3)"
    )
    options = parser.parse_args()
    build = options.build.resolve()
    rows = []
    for mpi in options.mpi or LAUNCH:
        if not (build / "bin" / f"datatypes_{mpi}").exists():
            sys.exit(f"datatypes_{mpi} is not built in {options.build}")
        for kind, processes in (("small", options.processes), ("huge", 1)):
            rows += rows_of(build, mpi, options.only, kind, processes)
            rows += analysis_rows(build, mpi, options.only, kind, processes)
    print_table(rows)
    report("types", rows, list(bars(rows)), not options.no_write)


if __name__ == "__main__":
    main()
