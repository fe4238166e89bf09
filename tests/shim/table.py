"""src/mpi/functions.def as Python reads it."""

import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "src" / "mpi" / "functions.def"
ROW = re.compile(
    r"^GAPLESS_FUNCTION(_AND_LARGE_COUNT)?\((\w+), (\w+), (\w+), (?:(none)|(\w+)\((\d+)\)), buffers\((.*)\)\)$"
)


@dataclass(frozen=True)
class Row:
    name: str
    mark: str
    since: str
    handle: str
    handle_index: int
    buffers: tuple[int, ...]


def rows() -> list[Row]:
    found = []
    for line in TABLE.read_text().splitlines():
        if not line.startswith("GAPLESS_FUNCTION"):
            continue
        matched = ROW.match(line)
        assert matched, f"not a row: {line}"
        both, name, mark, since, none, handle, index, buffers = matched.groups()
        rest = (none or handle, int(index or -1), tuple(map(int, re.findall(r"\d+", buffers))))
        found.append(Row(name, mark, since, *rest))
        if both:
            found.append(Row(f"{name}_c", mark, "large_count", *rest))
    return found
