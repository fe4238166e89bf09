#!/usr/bin/env python3
"""Runs the RDMA benchmark over the fabrics at hand; prints the tables, writes bench/results/rdma_FABRIC.json.

    bench/rdma.py BUILD_DIRECTORY [--fabric NAME] [--repetitions N] [--messages N] [--no-write]

Columns of a 128 x 4096 array of ints between two processes, by each scheme of Wu et al., 2003, packed in one piece, as
predicted (chosen), and contiguous memory of as many bytes: latency and bandwidth, and the ablations (segment unpack,
list posting, new buffers). Every row's bytes are verified. Posts, copies and registrations are those of one message, of
both sides together. Takes half a minute. Fabrics in software prove what is moved and how often, not how fast hardware
would be.
"""

import json
import subprocess
import sys

import _arguments
from _report import report

UNIT = {"latency": "us", "bandwidth": "MB/s"}
KEYS = ("fabric", "variant", "measure", "scheme", "moved_by", "columns", "bytes")
LIKE_BEST = 1.1  # what is chosen may take so many times the best way's time
LEAST_SHARE = 0.9  # in so many of the rows
COUNTS = ("posts", "lists", "notifications", "copies", "registrations")


def run(build, fabric, repetitions, messages):
    command = [str(build / "bin" / "rdma"), fabric, str(repetitions), str(messages)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"the benchmark failed over {fabric}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def as_row(measured, contiguous):
    row = {
        "case": {key: measured[key] for key in KEYS},
        "value": measured["value"],
        "unit": UNIT[measured["measure"]],
        "bound": contiguous[measured["measure"], measured["columns"]],
        "peers": {},
    }
    return row | {key: measured[key] for key in COUNTS}


def times_slower(row, other):
    """By how much a row is slower than another one of its measure."""
    ratio = row["value"] / other["value"]
    return ratio if row["measure"] == "latency" else 1 / ratio


def groups(measured, variant, measure):
    """Rows of the same columns, by scheme."""
    rows = [row for row in measured if row["variant"] == variant and row["measure"] == measure]
    for columns in sorted({row["columns"] for row in rows}):
        yield columns, {row["scheme"]: row for row in rows if row["columns"] == columns}


def forced(group):
    return [row for scheme, row in group.items() if scheme not in ("chosen", "contiguous")]


def fastest(group):
    return min(forced(group), key=lambda row: times_slower(row, forced(group)[0]))


def chosen_bar(measured, fabric):
    pairs = [
        (times_slower(group["chosen"], fastest(group)), measure, columns)
        for measure in UNIT
        for columns, group in groups(measured, "usual", measure)
    ]
    share = sum(slower <= LIKE_BEST for slower, _, _ in pairs) / len(pairs)
    worst, measure, columns = max(pairs)
    return {
        "name": f"the chosen way over {fabric}",
        "asks": f"at most {LIKE_BEST} times the best way's time in {LEAST_SHARE:.0%} of the rows",
        "figure": f"{share:.0%}; worst {worst:.2f} ({measure}, {columns} columns)",
        "holds": share >= LEAST_SHARE,
    }


def print_table(measured, variant, measure):
    found = list(groups(measured, variant, measure))
    schemes = list(found[0][1])
    fabric = found[0][1][schemes[0]]["fabric"]
    print(f"\n{fabric}, {variant}: {measure}, {UNIT[measure]} (posts, copies, registrations of a message)")
    print("columns  " + "  ".join(f"{scheme:>26}" for scheme in schemes) + "  fastest, slowest without chosen")
    for columns, group in found:
        cells = []
        for row in group.values():
            counts = f"({row['posts']:g}, {row['copies']:g}, {row['registrations']:g})"
            cells.append(f"{row['value']:.1f} {counts:>15}")
        best = fastest(group)
        loser = max(forced(group), key=lambda row: times_slower(row, best))
        verdict = f"{best['scheme']}, {loser['scheme']} ({times_slower(loser, best):.1f} times)"
        print(f"{columns:7}  " + "  ".join(f"{cell:>26}" for cell in cells) + f"  {verdict}")


def main():
    parser = _arguments.parser(__doc__)
    parser.add_argument("--fabric", action="append", help="verbs, or a provider of libfabric (tcp and shm)")
    parser.add_argument("--repetitions", type=int, default=31, metavar="N", help="ping-pongs a row (31)")
    parser.add_argument("--messages", type=int, default=50, metavar="N", help="messages a row of bandwidth (50)")
    options = parser.parse_args()
    build = options.build.resolve()
    if not (build / "bin" / "rdma").exists():
        sys.exit(f"rdma is not built in {options.build}")
    for fabric in options.fabric or ["tcp", "shm"]:
        measured = run(build, fabric, options.repetitions, options.messages)
        contiguous = {
            (row["measure"], row["columns"]): row["value"] for row in measured if row["scheme"] == "contiguous"
        }
        for variant in dict.fromkeys(row["variant"] for row in measured):
            for measure in UNIT:
                print_table(measured, variant, measure)
        rows = [as_row(row, contiguous) for row in measured]
        report("rdma", rows, [chosen_bar(measured, fabric)], not options.no_write, file_name=f"rdma_{fabric}")


if __name__ == "__main__":
    main()
