"""Benchmark results as committed under bench/results: reading them, their bars, and the README's table."""

import json
from pathlib import Path

from gapless.errors import UserError

REQUIRED = ("benchmark", "machine", "commit", "date", "rows", "bars")


def load(folder: Path) -> list[dict]:
    results = []
    for path in sorted(folder.rglob("*.json")):
        try:
            result = json.loads(path.read_text())
        except ValueError as error:
            raise UserError(f"{path} is not JSON: {error}") from error
        missing = [key for key in REQUIRED if key not in result]
        if missing:
            raise UserError(f"{path} lacks {', '.join(missing)}")
        results.append({**result, "path": path})
    return results


def machine_name(result: dict) -> str:
    machine = result["machine"]
    return machine if isinstance(machine, str) else machine.get("name", str(machine))


def failing_bars(results: list[dict]) -> list[tuple[dict, dict]]:
    return [(result, bar) for result in results for bar in result["bars"] if not bar["holds"]]


def bars_table(results: list[dict]) -> str:
    """What each benchmark asks, and what was measured: one row a bar."""
    lines = ["| question | asked | measured | holds | machine |", "|---|---|---|---|---|"]
    for result in results:
        for bar in result["bars"]:
            holds = "yes" if bar["holds"] else "**no**"
            lines.append(
                f"| {result['benchmark']}: {bar['name']} | {bar['asks']} | {shown(bar['figure'])} | {holds} "
                f"| {machine_name(result)} |"
            )
    return "\n".join(lines)


def gpu_classes_table(results: list[dict]) -> str:
    """Large packs of each class on each GPU, with the bound, the hand-written kernel and every other library."""
    lines = []
    for result in results:
        rows = [row for row in result["rows"] if row["case"].get("table") == "large"]
        largest = [row for row in rows if row["case"]["bytes"] >= 60 << 20]
        if not largest:
            continue
        peers = list(dict.fromkeys(name for row in largest for name in row["peers"]))
        lines += [
            *([""] if lines else []),
            f"{machine_name(result)}, {result['date']}, commit {result['commit']}, GB/s of packed bytes:",
            "",
            "| layout | | gapless | of the bound | " + " | ".join(peers) + " |",
            "|---|---|---|---|" + "---|" * len(peers),
        ]
        for row in largest:
            others = " | ".join(f"{row['peers'][name]:.0f}" if name in row["peers"] else "" for name in peers)
            lines.append(
                f"| {row['case']['layout']} | {row['case']['direction']} | **{row['value']:.0f}** "
                f"| {row['value'] / row['bound']:.2f} | {others} |"
            )
    return "\n".join(lines) or "Not measured yet."


def shown(figure) -> str:
    return f"{figure:.3g}" if isinstance(figure, float) else str(figure)
