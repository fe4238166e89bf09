"""`gapless report`: which scheme messages took, and what was predicted and measured, from the files of a run."""

import html
import io
import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from gapless.errors import UserError

VERSION = 1
OF_A_RANK = {"rank": int, "ranks": int, "library": str, "profile": str}  # what every report says of its rank
MOST = 1 << 64  # no count and no time of a run is as large
MATPLOTLIB = "a page needs matplotlib (pip install matplotlib); without --html the report is text"


def words(of: dict, name: str) -> str:
    if not isinstance(of[name], str):
        raise TypeError(name)
    return of[name]


def number(of: dict, name: str, *, kinds: tuple[type, ...] = (int, float)) -> float:
    if type(of[name]) not in kinds or not 0 <= of[name] < MOST:
        raise TypeError(name)
    return of[name]


def count(of: dict, name: str) -> int:
    return number(of, name, kinds=(int,))


@dataclass
class Times:
    """Sums over those of one kind that were timed; and over those of them of which a time was predicted."""

    count: int = 0
    ns: float = 0.0
    compared: int = 0
    compared_ns: float = 0.0
    predicted_ns: float = 0.0

    def add(self, other: dict) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + number(other, name))

    def mean(self) -> str:
        return f"{self.ns / self.count / 1000:.2f}" if self.count else "-"

    def predicted(self) -> str:
        return f"{self.predicted_ns / self.compared / 1000:.2f}" if self.compared else "-"


@dataclass
class Row:
    messages: int = 0
    bytes: int = 0
    moved: Times = field(default_factory=Times)
    sent: Times = field(default_factory=Times)


@dataclass
class Report:
    ranks: list[int]
    of_ranks: int  # how many the run had
    library: str
    profiles: list[str]
    rows: dict[tuple, Row]  # by scheme, side, and the powers of two that bytes and block length are below
    types: dict[tuple, dict[str, dict[str, int]]]  # by text and size: scheme -> messages and bytes


def files_of(path: str) -> list[Path]:
    """One file of a rank, or those of all ranks of the path that GAPLESS_REPORT had: text that the library puts the
    rank behind, also where it ends with a slash."""
    if not path:
        raise UserError("the path of the report is empty", 2)
    if Path(path).is_file():
        return [Path(path)]
    folder, name = os.path.split(path)
    of_a_rank = re.compile(re.escape(name) + r"\.\d+\.json")
    found = [file for file in Path(folder).glob("*.json") if of_a_rank.fullmatch(file.name) and file.is_file()]
    if not found:
        raise UserError(f"there is no report {path}.<rank>.json; a run writes them with GAPLESS_REPORT={path}")
    return found


def load(path: Path) -> dict:
    try:
        content = json.loads(path.read_text())
        version = content["gapless_report"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise UserError(f"{path} is no report of gapless") from error
    if version != VERSION:
        raise UserError(f"{path} is a report of version {version}, and not {VERSION}")
    if not all(isinstance(content.get(name), kind) for name, kind in OF_A_RANK.items()):
        raise UserError(f"{path} is no whole report of gapless")
    return content


def of_one_run(contents: dict[Path, dict]) -> dict[Path, dict]:
    """Without what a run with more ranks left behind: every run writes the file of its first rank."""
    ranks = contents[min(contents, key=lambda file: contents[file]["rank"])]["ranks"]
    mine = {file: content for file, content in contents.items() if content["ranks"] == ranks}
    if others := sorted(str(file) for file in contents if file not in mine):
        print(
            f"gapless: left out, for they are of a run with another number of ranks: {', '.join(others)}",
            file=sys.stderr,
        )
    return mine


def merge(path: str) -> Report:
    report = Report([], 0, "", [], {}, {})
    for file, content in of_one_run({file: load(file) for file in files_of(path)}).items():
        try:
            add(report, content)
        except (TypeError, KeyError, AttributeError) as error:
            raise UserError(f"{file} is no whole report of gapless") from error
    report.ranks.sort()
    return report


def add(report: Report, content: dict) -> None:
    report.ranks.append(content["rank"])
    report.of_ranks = content["ranks"]
    report.library = content["library"]
    if content["profile"] not in report.profiles:
        report.profiles.append(content["profile"])
    for row in content["rows"]:
        # Native messages are counted without a look at their datatype; of those that are timed the blocks are known.
        block_below = 0 if row["scheme"] == "native" else count(row, "block_below")
        key = (words(row, "scheme"), words(row, "side"), count(row, "bytes_below"), block_below)
        total = report.rows.setdefault(key, Row())
        total.messages += count(row, "messages")
        total.bytes += count(row, "bytes")
        total.moved.add(row["moved"])
        total.sent.add(row["sent"])
    for found in content["types"]:
        schemes = report.types.setdefault((words(found, "type"), count(found, "size")), {})
        for scheme, counts in found["schemes"].items():
            sums = schemes.setdefault(scheme, {"messages": 0, "bytes": 0})
            for name in sums:
                sums[name] += count(counts, name)


def size(below: int) -> str:
    """The class of sizes below a power of two: "<4K"."""
    for unit in ("", "K", "M"):
        if below < 1024:
            return f"<{below}{unit}"
        below //= 1024
    return f"<{below}G"


LEGEND = """\
A line is all messages of one scheme, side, class of sizes (<32K: less than 32 KiB, and not less than 16 KiB) and class
of block lengths; - stands for blocks that nobody has looked at, and for what was not timed or not predicted.

  moved us   the mean time of packing or unpacking, in microseconds
  sent us    the mean time of blocking sends
  predicted  the mean of what was predicted; for host memory that needs a profile of gapless calibrate

Below stand the datatypes, each behind the numbers of its messages by each scheme.
"""

HEADINGS = ("scheme", "side", "bytes", "blocks", "messages", "total B", "moved us", "predicted", "sent us", "predicted")


def lines(report: Report) -> list[tuple[str, ...]]:
    return [
        (
            scheme,
            side,
            size(bytes_below),
            size(block_below) if block_below else "-",
            str(row.messages),
            str(row.bytes),
            row.moved.mean(),
            row.moved.predicted(),
            row.sent.mean(),
            row.sent.predicted(),
        )
        for (scheme, side, bytes_below, block_below), row in sorted(report.rows.items())
    ]


def type_lines(report: Report) -> list[tuple[str, str]]:
    def ways(schemes: dict) -> str:
        return ", ".join(f"{scheme} {counts['messages']}" for scheme, counts in sorted(schemes.items()))

    return [(ways(schemes), text) for (text, _), schemes in sorted(report.types.items())]


def title(report: Report) -> str:
    found, all_ranks = len(report.ranks), report.of_ranks
    ranks = (f"{found} of " if found != all_ranks else "") + f"{all_ranks} rank" + ("s" if all_ranks != 1 else "")
    return f"{report.library}, {ranks}, profile {' and '.join(report.profiles)}"


def text(report: Report) -> str:
    table = [HEADINGS, *lines(report)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]

    def shown(line: tuple[str, ...]) -> str:
        cells = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))]
        return "  ".join(cells).rstrip()

    result = [title(report), "", *map(shown, table)]
    if report.types:
        result += ["", "types", *(f"  {ways}: {name}" for ways, name in type_lines(report))]
    return "\n".join(result)


def plots(report: Report) -> list[str]:
    """SVG: predicted against real, and messages by size and scheme."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(MATPLOTLIB) from error

    schemes = sorted({key[0] for key in report.rows})
    against, shares = Figure(figsize=(6, 5)), Figure(figsize=(8, 5))
    axes = against.add_subplot()
    for scheme in schemes:
        for what, marker in (("moved", "o"), ("sent", "x")):
            times = [getattr(row, what) for key, row in report.rows.items() if key[0] == scheme]
            points = [(t.predicted_ns / t.compared, t.compared_ns / t.compared) for t in times if t.compared]
            if points:
                color = f"C{schemes.index(scheme)}"
                axes.scatter(*zip(*points, strict=True), marker=marker, color=color, label=f"{scheme}, {what}")
    if axes.has_data():
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.axline((1e3, 1e3), (1e6, 1e6), color="grey", linewidth=0.8)
        axes.legend()
    axes.set(title="Predicted and real", xlabel="predicted ns", ylabel="real ns")

    axes = shares.add_subplot()
    classes = sorted({key[2] for key in report.rows})
    bottom = [0] * len(classes)
    for scheme in schemes:
        heights = [sum(r.messages for k, r in report.rows.items() if k[0] == scheme and k[2] == c) for c in classes]
        axes.bar([size(c) for c in classes], heights, bottom=bottom, label=scheme)
        bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
    axes.set(title="Which way messages went", xlabel="bytes", ylabel="messages")
    axes.tick_params(axis="x", rotation=60)
    if schemes:
        axes.legend()
    return [svg(figure) for figure in (against, shares)]


def svg(figure) -> str:
    figure.set_layout_engine("tight")
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    # Without the declaration and document type, which do not stand inside a page.
    return written.getvalue()[written.getvalue().index("<svg") :]


def page(report: Report) -> str:
    def cells(values, tag="td") -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(value)}</{tag}>" for value in values) + "</tr>"

    rows = "\n".join(map(cells, lines(report)))
    types = "\n".join(map(cells, type_lines(report)))
    style = "body{font-family:sans-serif;margin:2em} td,th{padding:.2em .8em;text-align:right}"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>gapless report</title><style>{style}</style></head><body>
<h1>gapless report</h1><p>{html.escape(title(report))}</p>
{"".join(plots(report))}
<h2>Sizes</h2><table>{cells(HEADINGS, "th")}
{rows}</table>
<h2>Types</h2><table>{cells(("messages", "type"), "th")}
{types}</table>
</body></html>
"""


def report(arguments) -> int:
    merged = merge(arguments.path)
    if arguments.html is None:
        print(text(merged))
        return 0
    try:
        Path(arguments.html).write_text(page(merged))
    except OSError as error:
        raise UserError(f"{arguments.html}: {error.strerror}") from error
    print(arguments.html)
    return 0
