#!/usr/bin/env python3
"""Halo exchanges of GPU memory: the forms of examples/halo3d between two processes under gapless, beside the best that
a program can make by hand on an MPI library that reads GPU memory.

    bench/halo.py BUILD_DIRECTORY [--mpi NAME] [--aware PREFIX] [--ranks N] [--rounds N] [--no-write]

By hand, one launch packs all pieces, contiguous messages (or one MPI_Alltoallv) go from GPU to GPU, and one launch
unpacks; that needs --aware, an Open MPI that reads GPU memory. Or the messages go from page-locked host memory to such
memory, by the library that gapless is compared on. Each is a job of its own, and every point is checked: of
halo3d in another job, for what is checked between exchanges is not in the caches. All ways take turns, once a round,
for jobs on the same machine differ by a third; the figures are medians of rounds.
Writes bench/results/halo_gpu.json.
"""

import json
import pathlib
import statistics
import subprocess
import sys

import _arguments
import _launch
from _report import gpus, report
from messages import AWARE, LAUNCH

BOXES = [(64, 1), (128, 2), (256, 3)]  # points a side, and how wide the halo is
ITERATIONS, CHECKED = 40, 3
MOST_SECONDS = 20  # of a job
FORMS = {
    "isend": "Isend and Irecv",
    "persistent": "Startall",
    "neighbor": "Neighbor_alltoallw",
    "pack": "Pack, Alltoallv",
}
BY_HAND = {"requests": "by hand, a message a piece", "alltoallv": "by hand, Alltoallv"}
THROUGH_HOST = {"requests_of_host": "by hand through host memory"}  # by the library itself
ASKED, MOST_TIMES = ("isend", "neighbor"), 1.25
CUDA = "/usr/local/cuda/lib64"


def run(build, mpi, prefix, ranks, settings, program, library_path=()):
    environment = _launch.environment(mpi, prefix, library_path)
    command = [f"{prefix}/bin/mpiexec", "-n", str(ranks), *LAUNCH[mpi], "env", *settings, *program]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=MOST_SECONDS).stdout


def with_gapless(build, mpi, prefix, ranks, form, box, checked):
    """Microseconds of an exchange, and its bytes; nothing where the job takes too long."""
    size, radius = box
    program = [str(build / "bin" / f"halo3d-{mpi}"), "--device", "--mode", form, "--size", str(size)]
    program += ["--radius", str(radius), "--iterations", str(CHECKED if checked else ITERATIONS)]
    program += [] if checked else ["--no-verify"]
    settings = [f"LD_PRELOAD={build}/lib/libgapless.so", "GAPLESS_ALL_RANKS=1"]  # as `gapless run` sets them
    try:
        output = run(build, mpi, prefix, ranks, settings, program, [CUDA])
    except subprocess.TimeoutExpired:
        return None
    fields = dict(word.split("=", 1) for word in output.split() if "=" in word)
    if fields.get("verified") != ("yes" if checked else "no"):
        sys.exit(f"{mpi}, {form}, {size}^3: {output}")
    return float(fields["median_us"]), int(fields["bytes"])


def by_hand(build, mpi, prefix, ranks, how, box):
    program = [str(build / "bin" / f"halo_by_hand_{mpi}"), *map(str, box), str(ITERATIONS), how]
    output = run(build, mpi, prefix, ranks, [], program, [f"{build}/lib"])
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not lines or "us" not in lines[0]:
        sys.exit(f"by hand, {how}: {output}")
    return lines[0]["us"]


def worst_bar(name, asks, ratios):
    if not ratios:
        return
    worst = max(ratios, key=ratios.get)
    figure = f"{ratios[worst]:.2f} ({worst})"
    yield {"name": name, "asks": asks, "figure": figure, "holds": ratios[worst] <= MOST_TIMES}


def bars(rows):
    for form in ASKED:
        for library in dict.fromkeys(row["case"]["library"] for row in rows):
            name = f"halos of GPU memory by {FORMS[form]}, {library}"
            for words, against in [
                ("the best by hand on the GPU-aware library", BY_HAND),
                ("packing, messages and unpacking by hand through the library's host memory", THROUGH_HOST),
            ]:
                ratios = {}
                for row in rows:
                    peers = [us for peer, us in row["peers"].items() if peer in against.values()]
                    if (row["case"]["library"], row["case"]["form"]) == (library, FORMS[form]) and peers:
                        ratios[f"{row['case']['points']}^3"] = row["value"] / min(peers)
                yield from worst_bar(name, f"at most {MOST_TIMES} times {words}", ratios)


def measure(build, libraries, ranks, rounds):
    """By (library, form, box) and by (library, how by hand, box): the microseconds of each round; and the bytes of each
    box."""
    ways = {(name, form, box): [] for name in libraries for form in FORMS for box in BOXES}
    hands = {(AWARE, how, box): [] for how in BY_HAND for box in BOXES if AWARE in libraries}
    hands |= {(name, how, box): [] for name in libraries for how in THROUGH_HOST for box in BOXES}
    sizes = {}
    for name, form, box in list(ways):
        if with_gapless(build, *libraries[name], ranks, form, box, checked=True) is None:
            print(f"{name:>20} {FORMS[form]:>20} {box[0]:4}^3, {box[1]} wide: more than {MOST_SECONDS} s", flush=True)
            del ways[name, form, box]
    for _ in range(rounds):
        for (name, how, box), samples in hands.items():
            samples.append(by_hand(build, *libraries[name], ranks, how, box))
        for (name, form, box), samples in ways.items():
            timed = with_gapless(build, *libraries[name], ranks, form, box, checked=False)
            if timed is None:
                sys.exit(f"{name}, {form}, {box[0]}^3: more than {MOST_SECONDS} s")
            us, sizes[box] = timed
            samples.append(us)
    return ways, hands, sizes


def peers_of(hands, library, box):
    """By hand on the GPU-aware library, and through this one's host memory."""
    medians = {key: statistics.median(samples) for key, samples in hands.items()}
    peers = {words: medians[AWARE, how, box] for how, words in BY_HAND.items() if (AWARE, how, box) in medians}
    return peers | {words: medians[library, how, box] for how, words in THROUGH_HOST.items()}


def main():
    parser = _arguments.parser(__doc__, LAUNCH)
    parser.add_argument("--aware", type=pathlib.Path, metavar="PREFIX", help="of an Open MPI that reads GPU memory")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each way, in turn")
    options = parser.parse_args()
    machine = gpus()
    build = options.build.resolve()
    libraries = {
        mpi: (mpi, _launch.prefix_of(build, mpi))
        for mpi in options.mpi or LAUNCH
        if (build / "bin" / f"halo3d-{mpi}").exists()
    }
    aware = options.aware.resolve() if options.aware else None
    if aware:
        libraries[AWARE] = ("openmpi", aware)
    ways, hands, sizes = measure(build, libraries, options.ranks, options.rounds)
    rows = []
    for (name, form, box), samples in ways.items():
        us = statistics.median(samples)
        peers = peers_of(hands, name, box)
        case = {"library": name, "form": FORMS[form], "points": box[0], "width": box[1], "bytes": sizes[box]}
        rows.append({"case": case, "value": us, "unit": "us", "bound": min(peers.values(), default=us), "peers": peers})
        text = ", ".join(f"{peer} {peer_us:.0f}" for peer, peer_us in peers.items())
        spread = f"{min(samples):.1f} to {max(samples):.1f}"
        print(f"{name:>20} {FORMS[form]:>20} {box[0]:4}^3, {box[1]} wide: {us:9.1f} us ({spread})   {text}", flush=True)
    if not rows:
        sys.exit(f"no program halo3d-<mpi> is built in {options.build}")
    report("halo", rows, list(bars(rows)), not options.no_write, machine=machine, file_name="halo_gpu")


if __name__ == "__main__":
    main()
