#!/usr/bin/env python3
"""Endpoints beside processes, and beside threads that share a rank, with each MPI library.

    bench/endpoints.py BUILD_DIRECTORY [--mpi NAME] [--ranks T]... [--quick] [--no-write]

Measured are: messages of T pairs between two processes of T endpoints, between 2 T processes, and between two processes
whose T threads share a rank; messages, latency and queue depths between endpoints of a process; MPI_Allreduce; and what
MPI_Comm_rank of MPI_COMM_WORLD costs before and after the first endpoints, and the library's own beside it. Processes
run the library alone. Wants 2 T cores that are otherwise idle; T goes up to half the cores. Writes
bench/results/endpoints.json.
"""

import json
import os
import pathlib
import subprocess
import sys

import _arguments
import _launch
from _report import report

LAUNCH = {"mpich": [], "openmpi": ["--oversubscribe", "--bind-to", "none"]}
SIZES = [8, 1 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20]
SUMS = [8, 1 << 10, 64 << 10, 1 << 20]
DEPTHS = [0, 1, 64, 1024, 4096]
SECONDS = 60
"""Of one program: most end within 5."""


class Figures:
    """Values by (what, way, ranks, size), of one MPI library; what a program could not measure is missing."""

    def __init__(self, build: pathlib.Path, mpi: str):
        self.build, self.mpi = build, mpi
        self.prefix = _launch.prefix_of(build, mpi)
        self.values: dict[tuple, float] = {}

    def measure(self, processes: int, what: str, way: str, *words):
        alone = way in ("processes", "threads", "memcpy")
        settings = [] if alone else [f"LD_PRELOAD={self.build}/lib/libgapless.so"]
        program = [self.build / "bin" / f"endpoints_{self.mpi}", what, way, *words]
        command = [f"{self.prefix}/bin/mpiexec", "-n", processes, *LAUNCH[self.mpi], "env", *settings, *program]
        environment = _launch.environment(self.mpi, self.prefix)
        words = [str(word) for word in command]
        try:
            done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, timeout=SECONDS)
            lines, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            lines, status = (late.stdout or b"").decode(), "too late"
        if status != 0:
            print(f"{self.mpi}: {what} by {way} {words[-5:]} ended with {status}", file=sys.stderr)
        for line in lines.splitlines():
            if not line.startswith("{"):
                continue
            found = json.loads(line)
            if "wrong" in found:
                sys.exit(f"{self.mpi}: {what} by {way}: {found['wrong']}")
            self.values[found["what"], found["way"], found["ranks"], found["size"]] = found["value"]

    def ratio(self, what: str, ways: tuple[str, str], ranks: int, size: int):
        """The first way's value for each of the second's; None unless both are there."""
        first, second = (self.values.get((what, way, ranks, size)) for way in ways)
        return first / second if first and second else None


def measure_all(figures: Figures, counts: list[int], sizes: list[int], depths: list[int]):
    for ranks in counts:
        for what, all_sizes in (("rate", sizes), ("allreduce", [size for size in SUMS if size in sizes])):
            figures.measure(2 * ranks, what, "processes", ranks, *all_sizes)
            figures.measure(2, what, "endpoints", ranks, *all_sizes)
        figures.measure(2, "rate", "threads", ranks, *sizes)
    for what in ("latency", "pair"):
        figures.measure(2, what, "processes", *sizes)
        figures.measure(1, what, "inside", *sizes)
    figures.measure(1, "pair", "memcpy", *sizes)
    figures.measure(2, "depth", "processes", "own", *depths)
    figures.measure(1, "depth", "inside", "own", *depths)
    figures.measure(1, "depth", "inside", "other", *depths)
    for way in ("dynamic", "static"):
        figures.measure(1, "calls", way)


def bar(name, asks, figure, holds):
    return {"name": name, "asks": asks, "figure": round(figure, 3), "holds": bool(holds)}


def worst(ratios, least=True):
    known = [ratio for ratio in ratios if ratio is not None]
    return (min(known) if least else max(known)) if known else None


def bars_of(figures: Figures, counts: list[int], sizes: list[int], depths: list[int]):
    """The bars of which both sides could be measured."""
    values, mpi = figures.values, figures.mpi
    cases = [(ranks, size) for ranks in counts for size in sizes]

    def at(what, way, size, ranks=1):
        return values.get((what, way, ranks, size))

    def lowest(name, asks, figure, bound):
        return [bar(f"{name}, {mpi}", asks, figure, figure >= bound)] if figure is not None else []

    def highest(name, asks, figure, bound):
        return [bar(f"{name}, {mpi}", asks, figure, figure <= bound)] if figure is not None else []

    def of_each(what, ways, some=None):
        return [figures.ratio(what, ways, ranks, size) for ranks, size in (some or cases)]

    to_processes, to_threads = ("endpoints", "processes"), ("endpoints", "threads")
    inside = ("inside", "processes")
    latency, pairs = at("latency", "inside", 8), at("pair", "inside", 8)
    others = [at("depth other", "inside", depth) for depth in depths]
    own = [figures.ratio("depth own", inside, 1, depth) for depth in depths]
    calls = {way: at("calls", way, 0) for way in ("alone", "before", "dynamic", "static")}
    after = [calls[way] - calls["before"] for way in ("dynamic", "static") if calls[way] and calls["before"]]
    found = lowest("messages of endpoints to those of processes", ">= 0.9", worst(of_each("rate", to_processes)), 0.9)
    if counts[-1] >= 8:
        eight = [(8, 8)]
        found += lowest(
            "messages of 8 endpoints to 8 threads of a rank", ">= 3", worst(of_each("rate", to_threads, eight)), 3
        )
    found += highest("8 bytes between endpoints of a process, us", "<= 0.2", latency and 1e6 * latency, 0.2)
    found += lowest("8 bytes between endpoints of a process, million a second", ">= 15", pairs and pairs / 1e6, 15)
    found += lowest("1 MiB between endpoints of a process to a copy", ">= 0.95",
                    figures.ratio("pair", ("inside", "memcpy"), 1, 1 << 20), 0.95)  # fmt: skip
    medium = [figures.ratio("pair", inside, 1, size) for size in (1 << 10, 64 << 10)]
    found += lowest("1 and 64 KiB inside a process to two processes", ">= 1", worst(medium), 1)
    if all(others):
        found += highest("other endpoints' queues, most to none", "< 1.1", max(others) / others[0], 1.1)
    found += highest("own queue to the library's", "<= 1", worst(own, least=False), 1)
    found += highest("Allreduce to that of processes", "<= 1", worst(of_each("allreduce", to_processes), False), 1)
    found += highest("a call after the first endpoints, ns more", "<= 5", max(after, default=None), 5)
    if calls["before"] and calls["alone"]:
        found += highest("a call before them, ns more", "<= 1", calls["before"] - calls["alone"], 1)
    return found


UNITS = {"rate": "messages/s", "pair": "messages/s", "latency": "s", "allreduce": "s", "calls": "ns"}
PEERS = ("processes", "threads", "memcpy", "alone")


def rows_of(figures: Figures):
    for (what, way, ranks, size), value in figures.values.items():
        if way in PEERS:
            continue
        peers = {peer: figures.values.get((what, peer, ranks, size)) for peer in PEERS}
        peers = {peer: peer_value for peer, peer_value in peers.items() if peer_value is not None}
        better = max if UNITS.get(what, "s") == "messages/s" else min
        yield {
            "case": {"library": figures.mpi, "what": what, "way": way, "ranks": ranks, "size": size},
            "value": value,
            "unit": UNITS.get(what, "s"),
            "bound": better(peers.values(), default=value),
            "peers": peers,
        }


def show(figures: Figures):
    for (what, way, ranks, size), value in sorted(figures.values.items()):
        unit = UNITS.get(what, "s")
        shown = {"messages/s": f"{value / 1e6:10.3f} M/s {value * size / 1e9:8.2f} GB/s", "ns": f"{value:10.2f} ns"}
        print(f"{figures.mpi:8} {what:12} {way:10} {ranks:3} {size:8} {shown.get(unit, f'{1e6 * value:10.3f} us')}")


def main():
    parser = _arguments.parser(__doc__, LAUNCH)
    parser.add_argument("--ranks", type=int, action="append", help="T; several may be given")
    parser.add_argument("--quick", action="store_true", help="few sizes: to see whether everything runs")
    options = parser.parse_args()
    build = options.build.resolve()
    counts = options.ranks or [ranks for ranks in (1, 2, 4, 8, 16) if 2 * ranks <= max(2, os.cpu_count() or 2)]
    sizes = [8, 1 << 20] if options.quick else SIZES
    depths = [0, 64] if options.quick else DEPTHS
    rows, bars = [], []
    for mpi in options.mpi or LAUNCH:
        if not (build / "bin" / f"endpoints_{mpi}").exists():
            continue
        figures = Figures(build, mpi)
        measure_all(figures, sorted(counts), sizes, depths)
        show(figures)
        rows += rows_of(figures)
        bars += bars_of(figures, sorted(counts), sizes, depths)
    if not rows:
        sys.exit(f"no program endpoints_<mpi> is built in {options.build}")
    report("endpoints", rows, bars, not options.no_write)


if __name__ == "__main__":
    main()
