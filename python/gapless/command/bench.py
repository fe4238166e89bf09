"""`gapless bench`: run one benchmark, or check what all committed results say."""

import ast
import subprocess
import sys
from pathlib import Path

from gapless import locate
from gapless.documents import results
from gapless.errors import UserError


def benchmarks(folder: Path) -> dict[str, Path]:
    """The scripts of bench/ that can be run by name; those that start with _ are shared by others."""
    return {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}


def question(path: Path) -> str:
    """What a benchmark measures: the first paragraph of its docstring."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split())


def required_options(path: Path) -> list[str]:
    """The options without which a benchmark cannot be run."""
    return [
        node.args[0].value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and any(word.arg == "required" and getattr(word.value, "value", False) is True for word in node.keywords)
    ]


def without_those_that_need_options(known: dict[str, Path]) -> dict[str, Path]:
    """What `all` runs; options are given to every benchmark, and others would not know those of one."""
    needed = {name: required_options(path) for name, path in known.items()}
    for name, options in needed.items():
        if options:
            print(f"gapless: left out: {name} needs {', '.join(options)}", file=sys.stderr, flush=True)
    return {name: path for name, path in known.items() if not needed[name]}


def build_directory() -> Path:
    """Every benchmark takes it as its first argument; its programs are in bin/."""
    return locate.require(locate.CORE).parent.parent


def bench(arguments) -> int:
    folder = locate.CHECKOUT / "bench"
    if not locate.is_checkout():
        raise UserError("benchmarks are run from a checkout of gapless, which this is not")
    if arguments.check:
        return check(folder / "results")
    known = benchmarks(folder)
    if arguments.list:
        width = max(map(len, known), default=0)
        print("\n".join(f"{name:<{width}}  {question(path)}" for name, path in known.items()))
        return 0
    if not arguments.name:
        raise UserError("bench needs the name of a benchmark, --list or --check", 2)
    if arguments.name == "all":
        chosen = without_those_that_need_options(known)
    else:
        chosen = {arguments.name: known.get(arguments.name)}
    status = 0
    for name, path in chosen.items():
        if path is None:
            raise UserError(f"there is no benchmark {name}; there are: {', '.join(known) or 'none'}", 2)
        command = [sys.executable, path, build_directory(), *arguments.options]
        status = max(status, abs(subprocess.run(command).returncode))
    return min(status, 255)


def check(folder: Path) -> int:
    loaded = results.load(folder)
    if not loaded:
        raise UserError(f"there are no results in {folder}")
    failing = results.failing_bars(loaded)
    for result, bar in failing:
        print(
            f"{result['benchmark']} on {results.machine_name(result)}: {bar['name']}: "
            f"asks {bar['asks']}, measured {results.shown(bar['figure'])}"
        )
    total = sum(len(result["bars"]) for result in loaded)
    print(f"{total - len(failing)} of {total} targets are met")
    return 1 if failing else 0
