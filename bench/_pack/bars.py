"""The bars of the GPU packing benchmark: what is asked, and whether the rows hold it.

A rate is held against what the traffic allows at the speed of a large copy. Where memory itself cannot do that (sparse
reads, stores of parts of a sector), the kernel written by hand for that one layout falls short as well; then being
within 5 % of it is enough, and the figure says how many rows held only so.
"""

from _pack.rows import COPY, HAND, LAUNCH, label, of_table, size

MEBIBYTE = 1 << 20


def bar(name, asks, judged):
    """One bar over many rows. `judged` has (score, holds, row), the lowest score being the worst."""
    if not judged:
        return None
    holding = sum(holds for _, holds, _ in judged)
    score, _, row = min(judged, key=lambda entry: (entry[1], entry[0]))
    return {
        "name": name,
        "asks": asks,
        "figure": f"{holding} of {len(judged)} hold; worst {score:.2f} ({label(row)}, {size(row['case']['bytes'])})",
        "holds": holding == len(judged),
    }


def fraction(row, ceiling):
    return row["value"] / ceiling(row)


def reaches(row, least, ceiling, least_of_hand=0.95):
    """(score, holds, row): `least` of the ceiling, or `least_of_hand` of the hand-written kernel that misses it too."""
    of_hand = row["value"] / row["peers"][HAND]
    hand_misses = row["peers"][HAND] < least * ceiling(row)
    mine = fraction(row, ceiling)
    holds = mine >= least or (hand_misses and of_hand >= least_of_hand)
    return (max(mine, of_hand) if hand_misses else mine, holds, row)


def traffic_bound(row):
    return row["bound"]


def attainable(row):
    """Below 64 MiB starting and ending a kernel show: a contiguous copy of the same traffic pays for them too."""
    return min(row["bound"], row["peers"][COPY])


def large(rows):
    chosen = [row for row in of_table(rows, "large") if row["case"]["bytes"] >= 60 * MEBIBYTE]
    return bar(
        "every class at 64 MiB",
        "at least 0.90 of the traffic bound, or 0.95 of the hand-written kernel where that misses it too",
        [reaches(row, 0.90, traffic_bound) for row in chosen],
    )


def medium(rows):
    chosen = [row for row in of_table(rows, "large") if row["case"]["bytes"] < 60 * MEBIBYTE]
    return bar(
        "every class from 1 to 16 MiB",
        "at least 0.80 of a contiguous copy of the same traffic, or 0.95 of the hand-written kernel that misses it too",
        [reaches(row, 0.80, attainable) for row in chosen],
    )


def has_too_few_loads_in_flight(length):
    """Rows of 5 to 7 words of 4 or 8 bytes: a word a thread is too little in flight, and two are too much."""
    return any(length % word == 0 and 5 <= length // word <= 7 for word in (4, 8)) and length <= 64


def block_lengths(rows):
    """Lengths that are no powers of two against the neighbours that are."""
    judged = []
    for direction in ("pack", "unpack"):
        mine = {}
        for row in of_table(rows, "block_lengths"):
            if row["case"]["direction"] == direction:
                mine[int(row["case"]["layout"].split()[1])] = row
        for length, row in mine.items():
            below = max((n for n in mine if n < length and n & (n - 1) == 0), default=None)
            above = min((n for n in mine if n > length and n & (n - 1) == 0), default=None)
            if length & (length - 1) == 0 or below is None or above is None:
                continue
            neighbours = min(fraction(mine[n], traffic_bound) for n in (below, above))
            least = 0.85 if direction == "pack" and has_too_few_loads_in_flight(length) else 0.95
            judged.append(reaches(row, least, lambda of, share=neighbours: of["bound"] * share, least))
    return bar(
        "block lengths of 12 to 1000 B",
        "within 5 % of the neighbouring powers of two, as fractions of the bound, or of the hand-written kernel; "
        "packing rows of 5 to 7 words, within 15 %; worst is of the neighbours, or of that kernel",
        judged,
    )


def constructions(rows):
    judged = []
    for row in of_table(rows, "constructions"):
        rates = [row["value"], *row["peers"].values()]
        judged.append((min(rates) / max(rates), min(rates) >= 0.95 * max(rates), row))
    return bar("constructions of one object", "all within 5 % of each other", judged)


def hand_coded(rows):
    judged = [
        (row["value"] / row["peers"][HAND], row["value"] >= row["peers"][HAND] / 1.05, row)
        for row in of_table(rows, "types_on_gpu")
    ]
    return bar("the types of Jenkins et al. against hand-coded kernels", "at most 5 % slower", judged)


def vendor(rows):
    """Where a kernel can beat every call of the vendor, gapless does."""
    judged = []
    for row in of_table(rows, "types", "blocks_1024"):
        calls = [time for name, time in row["peers"].items() if name.startswith("cuda") and "as many" not in name]
        if calls and row["case"]["family"] != "contiguous" and row["peers"][HAND] < min(calls):
            judged.append((min(calls) / row["value"], row["value"] <= min(calls), row))
    return bar("the vendor's copy calls", "faster than all of them wherever a hand-written kernel is", judged)


def latency(rows):
    bars = []
    ways = (
        ("no", 1.10, 1.10, ""),
        ("yes", 0.5, 0.55, ", resident kernel"),
        ("ready", 0.5, 0.55, ", resident kernel, buffers ready"),
    )
    for resident, most, most_of_largest, name in ways:
        judged = []
        for row in of_table(rows, "latency"):
            if row["case"]["resident"] == resident and row["case"]["bytes"] <= 64 << 10:
                allowed = (most if row["case"]["bytes"] < 64 << 10 else most_of_largest) * row["peers"][LAUNCH]
                judged.append((allowed / row["value"], row["value"] <= allowed, row))
        fraction_asked = f"{most}" if most == most_of_largest else f"{most} (of 64 KiB: {most_of_largest})"
        asks = f"at most {fraction_asked} of starting an empty kernel and polling its end"
        bars.append(bar(f"packs up to 64 KiB{name}", f"{asks} (score: allowed over measured time)", judged))
    return bars


def halo(rows):
    judged = [
        (1.3 * row["peers"][LAUNCH] / row["value"], row["value"] <= 1.3 * row["peers"][LAUNCH], row)
        for row in of_table(rows, "halo")
        if int(row["case"]["largest face"].split()[0]) <= 64 << 10
    ]
    return bar(
        "26 halo regions in one batch",
        "at most 1.3 of starting an empty kernel and polling its end (score: allowed over measured time)",
        judged,
    )


def one_shot(rows):
    """Packing writes over the link in full packets, unpacking reads over it 128 bytes at a time."""
    bars = []
    for direction, name in (("pack", "straight into host memory"), ("unpack", "straight out of host memory")):
        judged = [
            (fraction(row, traffic_bound), fraction(row, traffic_bound) >= 0.93, row)
            for row in of_table(rows, "one_shot")
            if row["case"]["bytes"] >= 15.9 * MEBIBYTE and row["case"]["direction"] == direction
        ]
        bars.append(bar(f"{name}, from 16 MiB", "at least 0.93 of the rate of a pinned copy", judged))
    return bars


def contention(rows):
    """After the program's work it counts when the pack is done, before it when both are."""
    cases = {}
    for row in of_table(rows, "contention"):
        key = tuple(value for name, value in row["case"].items() if name != "engine")
        cases.setdefault(key, {})[row["case"]["engine"]] = row
    judged = []
    for engines in cases.values():
        is_first = engines["gapless"]["case"]["order"] == "pack first"
        times = {name: row["peers"]["both together"] if is_first else row["value"] for name, row in engines.items()}
        mine = times.pop("gapless")
        judged.append((min(times.values()) / mine, mine <= 1.05 * min(times.values()), engines["gapless"]))
    return bar("beside a busy program", "never 5 % later than the better of kernels and copy engine", judged)


def evaluate(rows):
    found = [large(rows), medium(rows), block_lengths(rows), constructions(rows), hand_coded(rows), vendor(rows)]
    found += [*latency(rows), halo(rows), *one_shot(rows), contention(rows)]
    return [one for one in found if one is not None]
