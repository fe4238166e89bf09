"""What the documentation says is what is there: generated parts are up to date, links and paths lead somewhere."""

import re

import pytest

from gapless.documents.__main__ import documents, replaced

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
# A path in backticks, alone or before a command's arguments; it may be a pattern, as in `src/device/*.hpp`.
PATH = re.compile(r"`((?:src|tests|bench|python|docs)/[^`\s]*)[^`]*`")


def test_generated_documents_are_up_to_date(root):
    for path, content in documents(root).items():
        assert path.read_text() == content, f"{path} is out of date: run `make docs`"


def test_links_between_documents_lead_somewhere(root):
    for path in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]:
        for target in LINK.findall(path.read_text()):
            assert (path.parent / target).exists(), f"{path} links to {target}"


def test_paths_in_documents_exist(root):
    for path in [root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]:
        for target in PATH.findall(path.read_text()):
            assert list(root.glob(target.rstrip("/"))), f"{path} names {target}"


def test_a_path_is_told_from_other_words_in_backticks():
    text = "`src/mpi`, `python/gapless/*.py` and `bench/pack.py BUILD`, but neither `make test` nor src/base"
    assert PATH.findall(text) == ["src/mpi", "python/gapless/*.py", "bench/pack.py"]


def test_text_between_markers_is_exchanged_and_nothing_else():
    text = "before\n<!-- generated: x -->\nold\n<!-- end -->\nafter\n"
    expected = "before\n<!-- generated: x -->\nnew\n<!-- end -->\nafter\n"
    assert replaced(text, "x", "new") == expected
    with pytest.raises(ValueError, match="y"):
        replaced(text, "y", "new")
