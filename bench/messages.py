#!/usr/bin/env python3
"""Messages between two processes, of vectors with as much gap as data: half a round trip, beside a contiguous one.

    bench/messages.py BUILD_DIRECTORY [--memory gpu|host|mixed] [--mpi NAME] [--scheme NAME]... [--aware PREFIX] ...

Each scheme is forced, and "chosen" is what gapless chooses; "ready" is the same with GAPLESS_RESIDENT=ready, "by the
bus" with GAPLESS_IPC=0, and "the library alone" is without gapless. "bus" and "host pack" are the stages of messages
through host memory: a contiguous copy between GPU and page-locked memory, and the CPU's packing or unpacking. Memory
"mixed" is a GPU's for one process and the host's for the other. With --aware, the same on an Open MPI that reads GPU
memory, whose contiguous messages are what others are compared with, and where peers run too: "by hand" packs by the
driver's two-dimensional copies and sends contiguous messages, and "copy" is a copy of as many contiguous bytes within a
GPU. Each is a job of its own; all jobs run in turn, several rounds, and the medians of the rounds are reported. Writes
bench/results/messages_<memory>.json.
"""

import json
import pathlib
import statistics
import subprocess
import sys

import _arguments
import _launch
from _report import gpus, processor, report

KIB, MIB = 1 << 10, 1 << 20
SIZES = [KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 128 * MIB]
CONTIGUOUS = 0
BLOCKS = [8, 16, 32, 64, 128, 4096]
# Of schemes that are forced, to see what the choice misses.
FORCED_SIZES, FORCED_BLOCKS = [KIB, 64 * KIB, MIB, 16 * MIB], [CONTIGUOUS, 64, 4096]
SHORT = 16 * KIB
# Of messages through host memory.
LONG, LONG_BLOCKS = 4 * MIB, [CONTIGUOUS, 64, 4096]
SCHEMES = {
    "gpu": ["oneshot", "staged", "pipelined", "direct"],
    "host": ["native", "packed"],
    "mixed": ["staged", "pipelined"],
}
CHOSEN, READY, BY_THE_BUS = "chosen", "ready", "by the bus"
ALONE, BY_HAND, COPY, BUS, HOST_PACK = "the library alone", "by hand", "copy", "bus", "host pack"
SETTINGS = {CHOSEN: [], READY: ["GAPLESS_RESIDENT=ready"], BY_THE_BUS: ["GAPLESS_IPC=0"], HOST_PACK: []}
WORDS = {BY_HAND: "by_hand", COPY: "copy", BUS: "bus", HOST_PACK: "host_pack"}
WITHOUT_GAPLESS = [ALONE, BY_HAND, COPY, BUS]
MORE_WAYS = {"gpu": [READY, BY_THE_BUS, BUS], "host": [], "mixed": [BUS, HOST_PACK]}
LAUNCH = {"mpich": [], "openmpi": ["--oversubscribe", "--mca", "pml", "ob1"]}
AWARE = "GPU-aware Open MPI"
# (bytes from, below), blocks, at most so many times a contiguous message of the GPU-aware library.
MOST_TIMES = [
    ((KIB, 256 * KIB), (CONTIGUOUS, 128, 4096), 1.35),
    ((256 * KIB, 4 * MIB + 1), (CONTIGUOUS, 128, 4096), 1.25),
    ((4 * MIB + 1, 1 << 40), (CONTIGUOUS, 128, 4096), 1.12),
    ((4 * MIB + 1, 1 << 40), (64,), 1.25),
    ((4 * MIB + 1, 1 << 40), (32,), 1.7),
    ((4 * MIB + 1, 1 << 40), (8, 16), 2.2),
]
MOST_TIMES_READY, AS_GOOD_AS_THE_BEST, OF_THE_GRID = 0.85, 1.1, 0.85
MOST_TIMES_A_STAGE = 1.2


def run(build, mpi, prefix, memory, way, cases):
    """Microseconds of each (bytes, block), by that way; what is not measured is missing."""
    environment = _launch.environment(mpi, prefix)
    settings = [] if way in WITHOUT_GAPLESS else [f"LD_PRELOAD={build}/lib/libgapless.so"]
    if way not in WITHOUT_GAPLESS:
        settings += SETTINGS.get(way, [f"GAPLESS_SCHEME={way}"])
    words = [WORDS.get(way, "datatype"), *(f"{bytes_}:{block}" for bytes_, block in cases)]
    program = [str(build / "bin" / f"messages_{mpi}"), memory, *words]
    command = [f"{prefix}/bin/mpiexec", "-n", "2", *LAUNCH[mpi], "env", *settings, *program]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    wrong = [line["wrong"] for line in lines if "wrong" in line]
    if wrong or (result.returncode != 0 and way not in WITHOUT_GAPLESS):
        sys.exit(f"{mpi}, {way}: {', '.join(wrong) or f'ended with {result.returncode}'}")
    return {(line["bytes"], line["block"]): line["us"] for line in lines}


def median_of(rounds):
    """Of each case, over the rounds that have it."""
    cases = {case for us in rounds for case in us}
    return {case: statistics.median(us[case] for us in rounds if case in us) for case in cases}


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


def asked_of(way, cases):
    """Without gapless a GPU-aware library takes noncontiguous messages block by block: minutes for long ones."""
    if way == ALONE:
        return [
            (bytes_, block) for bytes_, block in cases if block in (CONTIGUOUS, 4096) and (not block or bytes_ <= MIB)
        ]
    if way == READY:
        return [(bytes_, block) for bytes_, block in cases if bytes_ <= SHORT]
    if way == BUS:
        return [(bytes_, block) for bytes_, block in cases if bytes_ >= LONG and block == CONTIGUOUS]
    if way in (BY_THE_BUS, HOST_PACK):
        return [(bytes_, block) for bytes_, block in cases if bytes_ >= LONG and block in LONG_BLOCKS]
    if way in (CHOSEN, BY_HAND):
        return cases
    return [(bytes_, block) for bytes_, block in cases if bytes_ in FORCED_SIZES and block in FORCED_BLOCKS]


def bar(library, name, asks, figures, most):
    """`figures`: what each case came to, by name."""
    if not figures:
        return []
    worst = max(figures, key=figures.get)
    return [
        {
            "name": f"{name}, {library}",
            "asks": asks,
            "figure": f"{figures[worst]:.2f} ({worst})",
            "holds": figures[worst] <= most,
        }
    ]


def name_of(bytes_, block):
    return f"{text_of(bytes_)}, {f'{block} B' if block else 'contiguous'}"


def bars(measured, references):
    """Of one library; `references`: a contiguous message of so many bytes on the library that reads GPU memory."""
    library, ways = measured
    for (least, below), blocks, most in MOST_TIMES:
        figures = {
            name_of(bytes_, block): us / references[bytes_]
            for (bytes_, block), us in ways[CHOSEN].items()
            if least <= bytes_ < below and block in blocks and bytes_ in references
        }
        words = " and ".join(f"{block} B" if block else "contiguous" for block in blocks)
        sizes = f"below {text_of(below)}" if below < 4 * MIB else "to 4 MiB" if least < 4 * MIB else "above 4 MiB"
        asks = f"at most {most} times a contiguous message of the GPU-aware library"
        yield from bar(library, f"GPU messages {sizes}, {words}", asks, figures, most)
    ready = {
        name_of(bytes_, block): us / references[bytes_]
        for (bytes_, block), us in ways.get(READY, {}).items()
        if bytes_ in references
    }
    asks = f"at most {MOST_TIMES_READY} times a contiguous message of the GPU-aware library"
    yield from bar(library, "GPU messages to 16 KiB, buffers ready", asks, ready, MOST_TIMES_READY)
    yield from stage_bars(library, ways)
    forced = [us for way, us in ways.items() if way not in (*SETTINGS, *WITHOUT_GAPLESS)]
    grid = [case for case in ways[CHOSEN] if any(case in us for us in forced)]
    good = sum(
        ways[CHOSEN][case] <= AS_GOOD_AS_THE_BEST * min(us[case] for us in forced if case in us) for case in grid
    )
    if grid:
        yield {
            "name": f"the choice among schemes for GPU messages, {library}",
            "asks": f"within 10 % of the best forced scheme in {OF_THE_GRID:.0%} of the grid, without a calibration",
            "figure": f"{good} of {len(grid)}",
            "holds": good >= OF_THE_GRID * len(grid),
        }


def stage_bars(library, ways):
    """Of long messages through host memory: by the bus between GPUs, or with one end in host memory."""
    if BUS not in ways:
        return
    is_mixed = HOST_PACK in ways
    name = "messages between GPU and host memory" if is_mixed else "GPU messages by the bus"
    through_host = ways[CHOSEN if is_mixed else BY_THE_BUS]
    times = {}
    for (bytes_, block), us in through_host.items():
        if bytes_ < LONG or block not in LONG_BLOCKS:
            continue
        stages = [ways[BUS][bytes_, CONTIGUOUS], *([ways[HOST_PACK][bytes_, block]] if is_mixed else [])]
        times[bytes_, block] = us / max(stages)
    figures = {name_of(*case): of for case, of in times.items()}
    asks = f"at most {MOST_TIMES_A_STAGE} times the slowest stage"
    yield from bar(library, f"{name} from {text_of(LONG)}", asks, figures, MOST_TIMES_A_STAGE)
    shorter, longest = 16 * MIB, SIZES[-1]
    falls = {
        name_of(longest, block): times[longest, block] / times[shorter, block]
        for block in LONG_BLOCKS
        if (longest, block) in times
    }
    asks = f"as near to that as {text_of(shorter)}, within 5 %"
    yield from bar(library, f"{name} of {text_of(longest)}", asks, falls, 1.05)


def main():
    parser = _arguments.parser(__doc__, LAUNCH)
    parser.add_argument("--memory", choices=sorted(SCHEMES), default="gpu")
    parser.add_argument("--scheme", action="append", help="forced; several may be given")
    parser.add_argument("--alone", action="store_true", help="the library without gapless, too")
    parser.add_argument("--aware", type=pathlib.Path, metavar="PREFIX", help="of an Open MPI that reads GPU memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most-bytes", type=int, default=SIZES[-1])
    options = parser.parse_args()
    machine = processor() if options.memory == "host" else gpus()
    build = options.build.resolve()
    blocks = LONG_BLOCKS if options.memory == "mixed" else [CONTIGUOUS, *BLOCKS]
    cases = [(bytes_, block) for bytes_ in SIZES if bytes_ <= options.most_bytes for block in blocks]
    cases = [(bytes_, block) for bytes_, block in cases if block < bytes_]
    schemes = SCHEMES[options.memory] if options.scheme is None else options.scheme
    peers = [*MORE_WAYS[options.memory], *schemes, *([ALONE] if options.alone else [])]
    libraries = [
        (mpi, mpi, _launch.prefix_of(build, mpi), peers)
        for mpi in options.mpi or LAUNCH
        if (build / "bin" / f"messages_{mpi}").exists()
    ]
    if options.aware:
        libraries.append((AWARE, "openmpi", options.aware.resolve(), [*schemes, "device", ALONE, BY_HAND, COPY]))
    jobs = [(name, mpi, prefix, way) for name, mpi, prefix, peers in libraries for way in [CHOSEN, *peers]]
    rounds = {(name, way): [] for name, _, _, way in jobs}
    for _ in range(options.rounds):
        for name, mpi, prefix, way in jobs:
            rounds[name, way].append(run(build, mpi, prefix, options.memory, way, asked_of(way, cases)))
    rows, all_measured = [], []
    for name, _, _, peers in libraries:
        ways = [CHOSEN, *peers]
        measured = {way: median_of(rounds[name, way]) for way in ways}
        all_measured.append((name, measured))
        print(f"{name}, {options.memory} memory")
        print(table(measured, cases, ways))
        rows += rows_of(measured, cases, name, options.memory)
    if not rows:
        sys.exit(f"no program messages_<mpi> is built in {options.build}")
    references = {}
    if options.aware:
        references = {bytes_: us for (bytes_, block), us in all_measured[-1][1][ALONE].items() if block == CONTIGUOUS}
    results = [found for measured in all_measured for found in bars(measured, references)]
    report("messages", rows, results, not options.no_write, machine=machine, file_name=f"messages_{options.memory}")


if __name__ == "__main__":
    main()
