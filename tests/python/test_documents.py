"""What the documentation says is what is there: generated parts are up to date, links and paths lead somewhere."""

import re

import pytest

from gapless.command.cli import parser
from gapless.documents.__main__ import documents, replaced

LINK = re.compile(r"\]\(([^)#:]*)(?:#([^):]*))?\)")
# A path in backticks, alone or before a command's arguments; it may be a pattern, as in `src/device/*.hpp`.
FOLDERS = ("src", "tests", "bench", "python", "docs", "examples", "include", "cmake", "requirements")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[^`\s]*)[^`]*`")
# A command of gapless, in backticks or in a block of code.
COMMAND = re.compile(r"`gapless ([a-z]+)")
CODE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND_OF_CODE = re.compile(r"^[^#\n]*\bgapless ([a-z]+)", re.MULTILINE)
# What is no path from the top, though it may look like one to its author.
PART = re.compile(r"`((?![./~]|build/|bin/|gapless/)[\w-]+/[\w./-]+\.\w+)`")

# A file of C++ or Python in a comment.
FILE = re.compile(r"\b[a-z]\w*(?:/\w+)*\.(?:cpp|hpp|cuh?|def|py)\b")


def read_by_people(root):
    return [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]


def anchors(text: str) -> set[str]:
    """What headings are linked by, as GitHub and GitLab name them."""
    headings = [line.lstrip("#").strip().lower() for line in text.splitlines() if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def test_generated_documents_are_up_to_date(root):
    for path, content in documents(root).items():
        assert path.read_text() == content, f"{path} is out of date: run `make docs`"


def test_links_between_documents_lead_somewhere(root):
    for path in read_by_people(root):
        for target, anchor in LINK.findall(path.read_text()):
            linked = path.parent / target if target else path
            assert linked.exists(), f"{path} links to {target}"
            assert not anchor or anchor in anchors(linked.read_text()), f"{path} links to {target}#{anchor}"


def test_paths_in_documents_exist(root):
    for path in read_by_people(root):
        text = path.read_text()
        for target in PATH.findall(text):
            assert list(root.glob(target.rstrip("/"))), f"{path} names {target}"
        for part in PART.findall(text):
            assert part.startswith(FOLDERS), f"{path} names {part}, which does not begin at the top"


def test_files_that_comments_name_exist(root):
    """From the top, from `src`, as an #include names them, or from the folder of the comment."""
    sources = [file for file in (root / "src").rglob("*") if file.suffix in (".cpp", ".hpp", ".cu", ".cuh", ".def")]
    assert len(sources) > 100
    for source in sources:
        for line in source.read_text().splitlines():
            for name in FILE.findall(line.partition("//")[2]):
                places = (root, root / "src", source.parent)
                assert any((place / name).exists() for place in places), f"{source} names {name}"


def test_commands_in_documents_exist(root):
    known = set(re.findall(r"^    ([a-z]+)\b", parser().format_help(), re.MULTILINE))
    assert {"run", "exec", "info"} <= known
    for path in read_by_people(root):
        text = path.read_text()
        in_code = [word for block in CODE.findall(text) for word in COMMAND_OF_CODE.findall(block)]
        for command in [*COMMAND.findall(text), *in_code]:
            assert command in known, f"{path} names gapless {command}"


def test_every_word_of_a_file_name_is_in_the_glossary(root):
    # Names of regimes and schemes stand in the tables of the concepts.
    texts = [(root / "docs" / name).read_text().lower() for name in ("glossary.md", "concepts.md")]
    known = set(re.findall(r"[a-z0-9]+", " ".join(texts)))
    names = {file.stem for file in (root / "src").rglob("*.*") if file.suffix != ".txt"}
    words = {word for name in names for word in name.split("_")}
    assert len(words) > 100
    missing = {word for word in words if not known & {word, word + "s", word.removesuffix("s")}}
    assert missing == set()


def test_a_path_is_told_from_other_words_in_backticks():
    text = "`src/mpi`, `python/gapless/*.py` and `bench/pack.py BUILD`, but neither `make test` nor src/base"
    assert PATH.findall(text) == ["src/mpi", "python/gapless/*.py", "bench/pack.py"]


def test_headings_are_linked_by_their_words():
    assert anchors("# One `word`\ntext\n### It's here, then\n") == {"one-word", "its-here-then"}


def test_text_between_markers_is_exchanged_and_nothing_else():
    text = "before\n<!-- generated: x -->\nold\n<!-- end -->\nafter\n"
    expected = "before\n<!-- generated: x -->\nnew\n<!-- end -->\nafter\n"
    assert replaced(text, "x", "new") == expected
    with pytest.raises(ValueError, match="y"):
        replaced(text, "y", "new")
