#!/usr/bin/env python3
"""How fast is packing on the GPU: prints the tables, writes bench/results/pack_<gpu>.json, and draws them.

    bench/pack.py BUILD_DIRECTORY [--quick] [--table NAME ...] [--processes N] [--peer NAME=LIBRARY ...] [--plot]
                  [--no-write]
    bench/pack.py BUILD_DIRECTORY --measured FILE ... --commit COMMIT     judge what pack_gpu printed on another machine

Everything is compared in one run on one machine, and each row is that of the median process: gapless, kernels written
by hand for one layout each, the vendor's copy calls, and what the memory traffic allows at the speed of a large copy. A
peer is another library behind the interface of bench/pack/contestants/peer.h; it is verified and timed beside the rest,
and the rows that have one go to bench/results/pack_beside_libraries_<gpu>.json.
"""

import os
import pathlib
import subprocess
import sys

import _arguments
from _pack import bars as pack_bars
from _pack import tables as pack_tables
from _pack.rows import parse
from _report import SOURCE, name_for, report


def bind_to_gpu():
    """Runs this process and its children on CPUs of the GPU's own socket: from another one every message is later."""
    query = ["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader", "--id=0"]
    try:
        bus = subprocess.run(query, stdout=subprocess.PIPE, check=True, text=True).stdout.strip().lower()
        ranges = pathlib.Path("/sys/bus/pci/devices", bus[-12:], "local_cpulist").read_text().strip().split(",")
    except (OSError, subprocess.CalledProcessError):
        return
    bounds = [[int(end) for end in one.split("-")] for one in ranges if one]
    near = {cpu for bound in bounds for cpu in range(bound[0], bound[-1] + 1)}
    if allowed := near & os.sched_getaffinity(0):
        os.sched_setaffinity(0, allowed)


def measure(build, words, **environment):
    program = build / "bin" / "pack_gpu"
    if not program.exists():
        sys.exit(f"pack_gpu is not built in {build}: it needs a CUDA compiler")
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"pack_gpu ended with status {done.returncode}")
    return done.stdout


def measure_all(build, tables, quick, peers, processes):
    """So many processes of every table, and as many of the latencies with each kind of resident kernel."""
    bind_to_gpu()
    flags = ["--quick"] if quick else []
    for peer in peers:
        flags += ["--peer", peer]
    output = ""
    for _ in range(processes):
        output += measure(build, [*flags, *tables])
        if not tables or "latency" in tables:
            for kind in ("1", "ready"):
                output += measure(build, [*flags, "latency"], GAPLESS_RESIDENT=kind)
    return output


def main():
    parser = _arguments.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer cases and samples, for development")
    parser.add_argument("--table", action="append", default=[], help="only this table; writes nothing")
    parser.add_argument("--measured", type=pathlib.Path, action="append", help="what pack_gpu printed elsewhere")
    parser.add_argument("--commit", help="with --measured: the commit that was measured")
    parser.add_argument("--processes", type=int, default=3, metavar="N", help="how often all is measured; 3")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=LIBRARY", help="another library")
    parser.add_argument("--plot", action="store_true", help="draw docs/figures/pack_*.svg (needs matplotlib)")
    options = parser.parse_args()
    if options.measured:
        output = "\n".join(path.read_text() for path in options.measured)
    else:
        output = measure_all(options.build.resolve(), options.table, options.quick, options.peer, options.processes)
    machine, rows = parse(output)
    pack_tables.print_tables(rows)
    write = not (options.no_write or options.quick or options.table)
    if options.peer:
        benchmark, bars = "pack_beside_libraries", []
        names = [peer.partition("=")[0] for peer in options.peer]
        rows = [row for row in rows if any(name in row["peers"] for name in names)]
    else:
        benchmark, bars = "pack", pack_bars.evaluate(rows)
    result = report(benchmark, rows, bars, write, machine, name_for(benchmark, machine), options.commit)
    if options.plot:
        from _pack import plots

        plots.draw(result, SOURCE / "docs" / "figures")


if __name__ == "__main__":
    main()
