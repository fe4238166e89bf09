#!/usr/bin/env python3
"""Messages between two processes, of vectors with as much gap as data: half a round trip, beside a contiguous one.

    bench/messages.py BUILD_DIRECTORY [--memory gpu|host] [--mpi NAME] [--scheme NAME]... [--aware PREFIX] ...

Each scheme is forced, and "chosen" is what gapless chooses; "the library alone" is without gapless. With --aware, the
same on an Open MPI that reads GPU memory, where peers run too: "by hand" packs by the driver's two-dimensional copies
and sends contiguous messages, and "copy" is a copy of as many contiguous bytes within a GPU. Each is a job of its own.
Writes bench/results/messages_<memory>.json.
"""

import json
import os
import pathlib
import subprocess
import sys

import _arguments
from _report import report
from host_pack import cache_variable

SIZES = [1 << 10, 64 << 10, 1 << 20, 16 << 20, 128 << 20, 512 << 20]
CONTIGUOUS = 0
BLOCKS = [64, 4096]
SCHEMES = {"gpu": ["oneshot", "staged", "pipelined", "direct"], "host": ["native", "packed"]}
CHOSEN, ALONE, BY_HAND, COPY = "chosen", "the library alone", "by hand", "copy"
WITHOUT_GAPLESS = {ALONE: "datatype", BY_HAND: "by_hand", COPY: "copy"}
LAUNCH = {"mpich": [], "openmpi": ["--oversubscribe", "--mca", "pml", "ob1"]}
AWARE = "GPU-aware Open MPI"


def run(build, mpi, prefix, memory, way, cases):
    """Microseconds of each (bytes, block), by that way; what is not measured is missing."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if mpi == "openmpi":
        environment["OPAL_PREFIX"] = str(prefix)  # where it is, which may not be where it was installed
    environment["LD_LIBRARY_PATH"] = f"{prefix}/lib:{environment.get('LD_LIBRARY_PATH', '')}"
    settings = [] if way in WITHOUT_GAPLESS else [f"LD_PRELOAD={build}/lib/libgapless.so"]
    if way not in WITHOUT_GAPLESS and way != CHOSEN:
        settings.append(f"GAPLESS_SCHEME={way}")
    words = [WITHOUT_GAPLESS.get(way, "datatype"), *(f"{bytes_}:{block}" for bytes_, block in cases)]
    program = [str(build / "bin" / f"messages_{mpi}"), memory, *words]
    command = [f"{prefix}/bin/mpiexec", "-n", "2", *LAUNCH[mpi], "env", *settings, *program]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    wrong = [line["wrong"] for line in lines if "wrong" in line]
    if wrong or (result.returncode != 0 and way not in WITHOUT_GAPLESS):
        sys.exit(f"{mpi}, {way}: {', '.join(wrong) or f'ended with {result.returncode}'}")
    return {(line["bytes"], line["block"]): line["us"] for line in lines}


def text_of(bytes_):
    return f"{bytes_ >> 20} MiB" if bytes_ >= 1 << 20 else f"{bytes_ >> 10} KiB"


def table(measured, cases, ways):
    reference = ALONE if ALONE in ways else CHOSEN
    lines = [f"{'message':>10} {'blocks':>10}" + "".join(f"{way:>28}" for way in ways)]
    for bytes_, block in cases:
        contiguous = measured[reference].get((bytes_, CONTIGUOUS))
        cells = []
        for way in ways:
            us = measured[way].get((bytes_, block))
            ratio = f"{us / contiguous:6.2f}" if us and contiguous else "     -"
            cells.append(f"{us:11.1f} us {bytes_ / us / 1000:6.1f}{ratio}" if us else " " * 27 + "-")
        lines.append(f"{text_of(bytes_):>10} {block or 'contiguous':>10}" + "".join(f"{cell:>28}" for cell in cells))
    lines.append(f"Half a round trip, GB/s, and how many times that of a contiguous message by {reference}.")
    return "\n".join(lines)


def rows_of(measured, cases, mpi, memory):
    for bytes_, block in cases:
        peers = {way: us[bytes_, block] for way, us in measured.items() if (bytes_, block) in us and way != CHOSEN}
        yield {
            "case": {"library": mpi, "memory": memory, "bytes": bytes_, "block": block},
            "value": measured[CHOSEN][bytes_, block],
            "unit": "us",
            "bound": min(peers.values(), default=measured[CHOSEN][bytes_, block]),
            "peers": peers,
        }


def main():
    parser = _arguments.parser(__doc__, LAUNCH)
    parser.add_argument("--memory", choices=sorted(SCHEMES), default="gpu")
    parser.add_argument("--scheme", action="append", help="forced; several may be given")
    parser.add_argument("--alone", action="store_true", help="the library without gapless, too")
    parser.add_argument("--aware", type=pathlib.Path, metavar="PREFIX", help="of an Open MPI that reads GPU memory")
    parser.add_argument("--most-bytes", type=int, default=SIZES[-1])
    options = parser.parse_args()
    build = options.build.resolve()
    cases = [(bytes_, block) for bytes_ in SIZES if bytes_ <= options.most_bytes for block in [CONTIGUOUS, *BLOCKS]]
    cases = [(bytes_, block) for bytes_, block in cases if block < bytes_]
    schemes = SCHEMES[options.memory] if options.scheme is None else options.scheme
    peers = [*schemes, *([ALONE] if options.alone else [])]
    libraries = [
        (mpi, mpi, cache_variable(build, f"GAPLESS_{mpi.upper()}_PREFIX"), peers)
        for mpi in options.mpi or LAUNCH
        if (build / "bin" / f"messages_{mpi}").exists()
    ]
    if options.aware:
        libraries.append((AWARE, "openmpi", options.aware.resolve(), [*schemes, "device", ALONE, BY_HAND, COPY]))
    rows = []
    for name, mpi, prefix, peers in libraries:
        ways = [CHOSEN, *peers]
        measured = {}
        for way in ways:
            # Without gapless a GPU-aware library takes noncontiguous messages block by block: minutes for long ones.
            asked = [case for case in cases if way != ALONE or case[1] == CONTIGUOUS or case[0] <= 1 << 16]
            measured[way] = run(build, mpi, prefix, options.memory, way, asked)
        print(f"{name}, {options.memory} memory")
        print(table(measured, cases, ways))
        rows += rows_of(measured, cases, name, options.memory)
    if not rows:
        sys.exit(f"no program messages_<mpi> is built in {options.build}")
    report("messages", rows, [], not options.no_write, file_name=f"messages_{options.memory}")


if __name__ == "__main__":
    main()
