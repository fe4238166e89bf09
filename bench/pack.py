#!/usr/bin/env python3
"""How fast is packing on the GPU: prints the tables, writes bench/results/pack_<gpu>.json, and draws them.

    bench/pack.py BUILD_DIRECTORY [--quick] [--table NAME ...] [--plot] [--peer NAME=COMMAND ...] [--no-write]
    bench/pack.py BUILD_DIRECTORY --measured FILE ...     judge what BUILD/bin/pack_gpu printed on another machine

Everything is compared in one run on one machine: gapless, kernels written by hand for one layout each, the vendor's
copy calls, and what the memory traffic allows at the speed of a large copy. A peer is another library: COMMAND is run
with the file of rows as its last argument and prints, for those cases of them that it can do as well, JSON lines
{"case": the row's case, "value": in the row's unit}.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import _pack_bars
import _pack_tables
from _pack_rows import parse
from _report import SOURCE, report


def measure(build, words, **environment):
    program = build / "bin" / "pack_gpu"
    if not program.exists():
        sys.exit(f"pack_gpu is not built in {build}: it needs a CUDA compiler")
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"pack_gpu ended with status {done.returncode}")
    return done.stdout


def measure_all(build, tables, quick):
    """One process for most tables, and one with a resident kernel for the latencies."""
    flags = ["--quick"] if quick else []
    output = measure(build, [*flags, *tables])
    if not tables or "latency" in tables:
        output += measure(build, [*flags, "latency"], GAPLESS_RESIDENT="1")
    return output


def add_peer(rows, name, command):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
        file.flush()
        output = subprocess.run([*command.split(), file.name], stdout=subprocess.PIPE, text=True, check=True).stdout
    add_peer_rows(rows, name, output)


def add_peer_rows(rows, name, output):
    by_case = {json.dumps(row["case"], sort_keys=True): row for row in rows}
    for entry in (json.loads(line) for line in output.splitlines() if line.startswith("{")):
        row = by_case.get(json.dumps(entry["case"], sort_keys=True))
        if row is not None:
            row["peers"][name] = entry["value"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="fewer cases and samples, for development")
    parser.add_argument("--table", action="append", default=[], help="only this table; writes nothing")
    parser.add_argument("--measured", type=pathlib.Path, action="append", help="what pack_gpu printed elsewhere")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="another library to run")
    parser.add_argument("--plot", action="store_true", help="draw docs/figures/pack_*.svg (needs matplotlib)")
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args()
    if options.measured:
        output = "\n".join(path.read_text() for path in options.measured)
    else:
        output = measure_all(options.build.resolve(), options.table, options.quick)
    machine, rows = parse(output)
    for peer in options.peer:
        add_peer(rows, *peer.split("=", 1))
    _pack_tables.print_tables(rows)
    write = not (options.no_write or options.quick or options.table)
    name = re.sub(r"[^a-z0-9]+", "_", machine.lower()).strip("_")
    result = report("pack", rows, _pack_bars.evaluate(rows), write, machine, f"pack_{name}")
    if options.plot:
        import _pack_plots

        _pack_plots.draw(result, SOURCE / "docs" / "figures")


if __name__ == "__main__":
    main()
