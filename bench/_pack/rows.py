"""The rows of the GPU packing benchmark: reading what the program prints, and how a row is called."""

import json

HAND = "hand-written kernel"
COPY = "copy of the same traffic"
LAUNCH = "empty kernel, completion polled"


def middle_of_repeated(rows):
    """Of rows that several processes measured, the one with the median multiple of a launch: launches differ by a
    sixth from process to process."""
    processes = {}
    for row in rows:
        processes.setdefault(json.dumps(row["case"], sort_keys=True), []).append(row)

    def multiple(row):
        return row["value"] / row["peers"].get(LAUNCH, 1)

    return [sorted(same, key=multiple)[len(same) // 2] for same in processes.values()]


def parse(text):
    """The machine, and the rows in the form of the result files."""
    machine, rows = None, []
    for entry in (json.loads(line) for line in text.splitlines() if line.startswith("{")):
        if "machine" in entry:
            machine = entry["machine"]
            continue
        case = {"table": entry.pop("table"), **entry.pop("case")}
        rows.append({"case": case, **entry})
    return machine, middle_of_repeated(rows)


def of_table(rows, *tables):
    return [row for row in rows if row["case"]["table"] in tables]


def size(number):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if number >= 1 << shift:
            return f"{number / (1 << shift):.4g} {unit}"
    return f"{number} B"


def label(row):
    return ", ".join(str(value) for key, value in row["case"].items() if key not in ("table", "bytes", "family"))
