"""Prints the rows of the GPU packing benchmark, a table for each question."""

from _pack.rows import COPY, HAND, label, of_table, size

TITLES = {
    "ceilings": "What the machine can do at best",
    "large": "Every class of layouts, cold memory",
    "block_lengths": "Vectors of any block length, cold memory",
    "types": "The types of Jenkins et al., until the packed bytes are there",
    "types_on_gpu": "The same types, time on the GPU alone",
    "blocks_1024": "1024 blocks, until the packed bytes are there",
    "faces": "Faces of cubes of doubles",
    "stages": "The papers' algorithm, taken apart (4 MiB)",
    "constructions": "One object, differently constructed",
    "latency": "Small messages, from the call to the data being there",
    "halo": "26 halo regions",
    "many": "Many small jobs in one call",
    "one_shot": "Host memory directly",
    "contention": "Beside a busy program",
}
SHORT = {HAND: "by hand", COPY: "copy", "cudaMemcpyAsync of as many bytes": "memcpy"}


def print_rate(row):
    peers = row["peers"]
    others = "  ".join(f"{SHORT.get(name, name)} {value:.4g}" for name, value in peers.items())
    of_bound = f"{row['value'] / row['bound']:6.2f}" if row["bound"] else " " * 6
    print(f"{label(row):74} {size(row['case']['bytes']):>10} {row['value']:8.1f}{of_bound}  {others}")


def print_tables(rows):
    """Rates are in GB/s of packed bytes with the fraction of the traffic bound beside them, times in microseconds."""
    for table, title in TITLES.items():
        mine = of_table(rows, table)
        if not mine:
            continue
        print(f"\n{title} [{mine[0]['unit']}]")
        for row in mine:
            print_rate(row)
    print()
