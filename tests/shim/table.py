"""src/mpi/table/functions.def as Python reads it."""

import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "src" / "mpi" / "table" / "functions.def"
ROW = re.compile(r"^GAPLESS_FUNCTION(_AND_LARGE_COUNT)?\((\w+), (\w+), (\w+), roles\((.*)\)\)$")
ROLE = re.compile(r"(at_root\()?(\w+)\(([\d, ]+)\)\)?")


@dataclass(frozen=True)
class Role:
    kind: str
    places: tuple[int, ...]
    at_root: bool


@dataclass(frozen=True)
class Row:
    name: str
    mark: str
    since: str
    roles: tuple[Role, ...]


EXTENSION = re.compile(r"^GAPLESS_EXTENSION\((\w+)\)$", re.MULTILINE)


def extensions() -> list[str]:
    return EXTENSION.findall(TABLE.with_name("extensions.def").read_text())


def rows() -> list[Row]:
    found = []
    for line in TABLE.read_text().splitlines():
        if not line.startswith("GAPLESS_FUNCTION"):
            continue
        matched = ROW.match(line)
        assert matched, f"not a row: {line}"
        both, name, mark, since, text = matched.groups()
        roles = tuple(
            Role(role.group(2), tuple(map(int, role.group(3).split(", "))), bool(role.group(1)))
            for role in ROLE.finditer(text)
        )
        found.append(Row(name, mark, since, roles))
        if both:
            found.append(Row(f"{name}_c", mark, "large_count", roles))
    return found
