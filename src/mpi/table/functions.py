"""The table of MPI functions as everything but C++ reads it: tests import rows(), CMake runs the file.

    functions.py HEADER

prints GAPLESS_DECLARED_<name> 0 or 1 for every function of the tables, as the header given declares it or not: variants
take types from the declarations, and headers differ by MPI version.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("functions.def")
ADDITIONS = Path(__file__).with_name("additions.def")
EXTENSIONS = Path(__file__).with_name("extensions.def")
USED_TABLE = Path(__file__).with_name("used_functions.def")
ROW = re.compile(r"^GAPLESS_FUNCTION(_AND_LARGE_COUNT)?\((\w+), (\w+), (\w+), roles\((.*)\)\)$")
USED_ROW = re.compile(r"^GAPLESS_USED\((\w+), (\w+)\)$", re.MULTILINE)
DECLARATION = re.compile(r"(?<![A-Za-z0-9_])MPI_(\w+) *\(")
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


def rows() -> list[Row]:
    found = []
    for line in TABLE.read_text().splitlines():
        if not re.match(r"GAPLESS_FUNCTION[(_]", line):
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


def extensions() -> list[str]:
    """Names, without MPIX_, of what libraries have beside the standard."""
    return re.findall(r"^GAPLESS_EXTENSION\((\w+),", EXTENSIONS.read_text(), re.MULTILINE)


def additions() -> list[str]:
    """Names, without MPIX_, of what gapless adds."""
    return re.findall(r"^GAPLESS_ADDITION\((\w+)\)", ADDITIONS.read_text(), re.MULTILINE)


def fortran_additions() -> list[str]:
    """Names, without mpix_, of the same in Fortran's spelling."""
    return re.findall(r"^GAPLESS_FORTRAN_ADDITION\((\w+)\)", ADDITIONS.read_text(), re.MULTILINE)


def names() -> list[str]:
    """Functions of both tables, each once."""
    used = [name for name, _ in USED_ROW.findall(USED_TABLE.read_text())]
    return list(dict.fromkeys([row.name for row in rows()] + used))


def main(header: str):
    declared = set(DECLARATION.findall(Path(header).read_text()))
    for name in names():
        print(f"#define GAPLESS_DECLARED_{name} {int(name in declared)}")


if __name__ == "__main__":
    main(sys.argv[1])
