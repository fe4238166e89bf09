#!/usr/bin/env python3
"""Runs the RDMA benchmark over the fabrics at hand; prints the tables, writes bench/results/rdma_FABRIC.json.

    bench/rdma.py BUILD_DIRECTORY [--fabric NAME] [--repetitions N] [--messages N] [--no-write]

Columns of a 128 x 4096 array of ints between two processes, by each scheme of Wu et al., 2003: latency and bandwidth,
and the ablations (segment unpack, list posting, new buffers). Posts, copies and registrations are those of one
message, of both sides together. Fabrics in software prove what is moved and how often, not how fast hardware would be.
"""

import json
import subprocess
import sys

import _arguments
from _report import report

UNIT = {"latency": "us", "bandwidth": "MB/s"}
KEYS = ("fabric", "variant", "measure", "scheme", "moved_by", "columns", "bytes")
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


def print_table(measured, variant, measure):
    rows = [row for row in measured if row["variant"] == variant and row["measure"] == measure]
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    print(f"\n{rows[0]['fabric']}, {variant}: {measure}, {UNIT[measure]} (posts, copies, registrations of a message)")
    print("columns  " + "  ".join(f"{scheme:>26}" for scheme in schemes))
    for columns in sorted({row["columns"] for row in rows}):
        cells = []
        for scheme in schemes:
            row = next(row for row in rows if row["columns"] == columns and row["scheme"] == scheme)
            counts = f"({row['posts']:g}, {row['copies']:g}, {row['registrations']:g})"
            cells.append(f"{row['value']:.1f} {counts:>15}")
        print(f"{columns:7}  " + "  ".join(f"{cell:>26}" for cell in cells))


def main():
    parser = _arguments.parser(__doc__)
    parser.add_argument("--fabric", action="append", help="verbs, or a provider of libfabric (tcp and shm)")
    parser.add_argument("--repetitions", type=int, default=51, metavar="N", help="ping-pongs a row (51)")
    parser.add_argument("--messages", type=int, default=100, metavar="N", help="messages a row of bandwidth (100)")
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
        report("rdma", rows, [], not options.no_write, file_name=f"rdma_{fabric}")


if __name__ == "__main__":
    main()
