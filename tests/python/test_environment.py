"""The table of environment variables lists exactly the variables that the sources read."""

import re

from gapless import environment

LITERAL = re.compile(r'"(GAPLESS(?:_[A-Z]+)*)"')


def names_read(root) -> set[str]:
    files = [path for path in (root / "src").rglob("*") if path.suffix in {".cpp", ".hpp", ".cu", ".cuh", ".h", ".c"}]
    files += [path for path in (root / "python" / "gapless").glob("*.py") if path.name != "environment.py"]
    return {name for path in files for name in LITERAL.findall(path.read_text())}


def names_listed() -> set[str]:
    return {variable.name for variable in environment.VARIABLES}


def test_every_variable_that_is_read_is_listed(root):
    assert names_read(root) - names_listed() == set()


def test_every_variable_that_is_listed_is_read(root):
    assert names_listed() - names_read(root) == set()


def test_names_are_listed_once():
    assert len(names_listed()) == len(environment.VARIABLES)
