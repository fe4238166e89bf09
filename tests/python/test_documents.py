"""What the documentation says is what is there: generated parts are up to date, links lead somewhere."""

import re

import pytest

from gapless import documents

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def test_generated_documents_are_up_to_date(root):
    for path, content in documents.documents(root).items():
        assert path.read_text() == content, f"{path} is out of date: run `make docs`"


def test_links_between_documents_lead_somewhere(root):
    for path in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]:
        for target in LINK.findall(path.read_text()):
            assert (path.parent / target).exists(), f"{path} links to {target}"


def test_text_between_markers_is_exchanged_and_nothing_else():
    text = "before\n<!-- generated: x -->\nold\n<!-- end -->\nafter\n"
    expected = "before\n<!-- generated: x -->\nnew\n<!-- end -->\nafter\n"
    assert documents.replaced(text, "x", "new") == expected
    with pytest.raises(ValueError, match="y"):
        documents.replaced(text, "y", "new")
