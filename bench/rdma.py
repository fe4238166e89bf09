#!/usr/bin/env python3
"""Runs the RDMA benchmark over the fabrics at hand; prints the tables, writes bench/results/rdma.json and the figures.

    bench/rdma.py BUILD_DIRECTORY [--fabric NAME] [--runs N] [--rounds N] [--messages N] [--ranks N] [--no-write]

Columns of a 128 x 4096 array of ints between two processes, by each scheme of Wu et al., 2003, packed in one piece, as
predicted (chosen), and contiguous memory of as many bytes: latency and bandwidth, and the ablations (segment unpack,
list posting, new buffers). Several pairs of processes one after the other, for what the costs were at the start of one,
and where its memory lies, holds for all its rows. Then MPI_Alltoall of a struct of doubling blocks between eight ranks
under MPICH: by the library alone, by the library of bytes packed before, by gapless as it chooses, and as messages by
each scheme. Every row's bytes are verified. Posts, copies and registrations are those of one message, of both sides
together. Fabrics in software prove what is moved and how often, not how fast hardware would be.
"""

import json
import math
import statistics
import subprocess
import sys

import _arguments
import _launch
from _report import SOURCE, report

UNIT = {"latency": "us", "bandwidth": "MB/s", "alltoall": "us"}
KEYS = ("fabric", "variant", "measure", "scheme", "moved_by", "columns", "bytes")
COUNTS = ("posts", "lists", "notifications", "copies", "registrations")
LIKE_BEST = 1.1  # what is chosen may take so many times the best way's time
LEAST_SHARE = 0.9  # in so many of the rows
NOISE = 1.1  # what is chosen may take so many times the library's time
COPIES = {"fabric-pipelined": 2, "pipelined": 2, "gather-write": 1, "scatter-read": 1, "multi-write": 0}
BLOCKS, GATHERED = 128, 4  # of every message; of one operation, by tcp and shm


def lines_of(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def run(build, fabric, rounds, messages):
    return lines_of([str(build / "bin" / "rdma"), fabric, str(rounds), str(messages)])


def merged(runs):
    """Rows of several runs as if they were one, with the counts of the last one."""
    rows = []
    for same in zip(*runs, strict=True):
        rounds = [value for row in same for value in row["rounds"]]
        moved_by = statistics.mode(row["moved_by"] for row in same)
        rows.append(same[-1] | {"value": statistics.median(rounds), "rounds": rounds, "moved_by": moved_by})
    return rows


def run_alltoall(build, fabric, ranks):
    """The struct's rows, as those of a variant of their own."""
    prefix = _launch.prefix_of(build, "mpich")
    settings = {
        "LD_PRELOAD": f"{build}/lib/libgapless.so",
        "GAPLESS_ALL_RANKS": "1",
        "GAPLESS_FABRIC": fabric,
        "GAPLESS_FABRIC_NEIGHBOURS": "1",
    }
    launch = [f"{prefix}/bin/mpiexec", "-n", str(ranks), "env", *(f"{key}={value}" for key, value in settings.items())]
    environment = _launch.environment("mpich", prefix, MPIR_CVAR_POLLS_BEFORE_YIELD="10")
    rows = lines_of([*launch, str(build / "bin" / "rdma_alltoall_mpich")], env=environment)
    name = {"fabric": fabric, "variant": f"struct, {ranks} ranks"}
    return [row | name | {"moved_by": row["scheme"]} for row in rows]


def as_row(measured, bounds):
    row = {
        "case": {key: measured[key] for key in KEYS},
        "value": measured["value"],
        "unit": UNIT[measured["measure"]],
        "bound": bounds[measured["measure"], measured["columns"]],
        "peers": {},
    }
    return row | {key: measured[key] for key in COUNTS}


def times_slower(row, other):
    """By how much a row is slower than another one of its measure."""
    ratio = row["value"] / other["value"]
    return 1 / ratio if row["measure"] == "bandwidth" else ratio


def groups(measured, variant, measure):
    """Rows of the same columns, by scheme."""
    rows = [row for row in measured if row["variant"] == variant and row["measure"] == measure]
    for columns in sorted({row["columns"] for row in rows}):
        yield columns, {row["scheme"]: row for row in rows if row["columns"] == columns}


def forced(group):
    return [row for scheme, row in group.items() if scheme not in ("chosen", "contiguous", "gapless")]


def fastest(group):
    return min(forced(group), key=lambda row: times_slower(row, forced(group)[0]))


def bar(name, asks, figure, holds):
    return {"name": name, "asks": asks, "figure": figure, "holds": holds}


def in_rounds(row, which):
    """A row as if only these rounds had been: every second one, from the first (0) or the second (1) on."""
    return row | {"value": statistics.median(row["rounds"][which::2])}


def slower_than_fastest(group):
    """By how much what is chosen is slower than the fastest way. Half of the rounds say which that is, and the other
    half compare the two, so that no way is the fastest by luck."""
    first = {scheme: in_rounds(row, 0) for scheme, row in group.items()}
    return slower_than(group, "chosen", fastest(first)["scheme"], slice(1, None, 2))


def slower_than(group, which, other, rounds=slice(None)):
    """By how much one way is slower than another in the median of the rounds: each is a comparison of its own."""
    pairs = zip(group[which]["rounds"][rounds], group[other]["rounds"][rounds], strict=True)
    is_rate = group[other]["measure"] == "bandwidth"
    return statistics.median(b / a if is_rate else a / b for a, b in pairs)


def chosen_bar(measured, fabric):
    pairs = [
        (slower_than_fastest(group), measure, columns)
        for measure in ("latency", "bandwidth")
        for columns, group in groups(measured, "usual", measure)
    ]
    share = sum(slower <= LIKE_BEST for slower, _, _ in pairs) / len(pairs)
    worst, measure, columns = max(pairs)
    return bar(
        f"the chosen way over {fabric}",
        f"at most {LIKE_BEST} times the best way's time in {LEAST_SHARE:.0%} of the rows",
        f"{share:.0%}; worst {worst:.2f} ({measure}, {columns} columns)",
        share >= LEAST_SHARE,
    )


def packed_bar(measured, fabric):
    """Packed in one piece is what the MPI library would carry."""
    pairs = [
        (slower_than(group, "chosen", "packed"), measure, columns)
        for measure in ("latency", "bandwidth")
        for columns, group in groups(measured, "usual", measure)
    ]
    worst, measure, columns = max(pairs)
    return bar(
        f"the chosen way over {fabric}, beside packed in one piece",
        f"at most {NOISE} times its time in every row",
        f"{worst:.2f} ({measure}, {columns} columns)",
        worst <= NOISE,
    )


def posts_of(row):
    """Wu et al.'s arithmetic: blocks by the gather limit, in each segment; one write for each block (Multi-W)."""
    bytes_, block, segment = row["bytes"], row["bytes"] / BLOCKS, row["segment"]
    segments = math.ceil(bytes_ / segment)
    if row["scheme"] == "multi-write":
        return BLOCKS
    if row["scheme"] == "pipelined":
        return segments
    ends = [(i * segment, min((i + 1) * segment, bytes_)) for i in range(segments)]
    return sum(math.ceil((math.ceil(end / block) - begin // block) / GATHERED) for begin, end in ends)


def counted_bars(measured, fabric):
    """What is counted is no matter of speed."""
    rows = [row for row in measured if row["variant"] == "usual" and row["scheme"] in COPIES]
    copies = [row for row in rows if row["copies"] != COPIES[row["scheme"]]]
    registering = [row for row in rows if row["measure"] == "bandwidth" and row["registrations"] > 0]
    posting = [row for row in rows if row["posts"] != posts_of(row)]
    counted = [
        ("copies", "2 pipelined, 1 gather-write and scatter-read, 0 multi-write", copies),
        ("registrations in the steady state", "none", registering),
        ("posts", f"blocks / {GATHERED} in each segment; multi-write one a block", posting),
    ]
    for what, asks, wrong in counted:
        figure = "all rows" if not wrong else f"not {len(wrong)} of {len(rows)} rows"
        yield bar(f"{what} over {fabric}", asks, figure, not wrong)


def alltoall_bar(measured, fabric):
    pairs = [
        (slower_than(group, "gapless", "library"), columns)
        for variant in dict.fromkeys(row["variant"] for row in measured)
        for columns, group in groups(measured, variant, "alltoall")
    ]
    if pairs:
        worst, last = max(pairs)
        yield bar(
            f"MPI_Alltoall of a struct of doubling blocks, GAPLESS_FABRIC={fabric}",
            f"at most {NOISE} times the library's time in every row",
            f"{worst:.2f} (last block {last} ints)",
            worst <= NOISE,
        )


def print_table(measured, variant, measure):
    found = list(groups(measured, variant, measure))
    if not found:
        return
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


def bounds_of(measured):
    """Contiguous memory of as many bytes; of an exchange, the library alone."""
    like = {"contiguous", "library"}
    return {(row["measure"], row["columns"]): row["value"] for row in measured if row["scheme"] in like}


def main():
    parser = _arguments.parser(__doc__)
    parser.add_argument("--fabric", action="append", help="verbs, or a provider of libfabric (tcp and shm)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="pairs of processes (5)")
    parser.add_argument(
        "--rounds", type=int, default=13, metavar="N", help="of a run, in which all ways take turns (13)"
    )
    parser.add_argument("--messages", type=int, default=10, metavar="N", help="of a round of bandwidth (10)")
    parser.add_argument("--ranks", type=int, default=8, metavar="N", help="ranks of the exchange (8)")
    options = parser.parse_args()
    build = options.build.resolve()
    for program in ("rdma", "rdma_alltoall_mpich"):
        if not (build / "bin" / program).exists():
            sys.exit(f"{program} is not built in {options.build}")
    rows, bars = [], []
    for fabric in options.fabric or ["tcp", "shm"]:
        runs = [run(build, fabric, options.rounds, options.messages) for _ in range(options.runs)]
        measured = merged(runs)
        if fabric != "verbs":  # messages of MPI go by libfabric's providers
            measured += run_alltoall(build, fabric, options.ranks)
        for variant in dict.fromkeys(row["variant"] for row in measured):
            for measure in UNIT:
                print_table(measured, variant, measure)
        bounds = bounds_of(measured)
        rows += [as_row(row, bounds) for row in measured]
        bars += [chosen_bar(measured, fabric), packed_bar(measured, fabric), *counted_bars(sum(runs, []), fabric)]
        bars += alltoall_bar(measured, fabric)
    result = report("rdma", rows, bars, not options.no_write)
    if not options.no_write:
        import _rdma_plots  # where matplotlib is

        _rdma_plots.draw(result, SOURCE / "docs" / "figures")


if __name__ == "__main__":
    main()
