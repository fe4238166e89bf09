"""Benchmark results as committed under bench/results: reading them, and their bars."""

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


def shown(figure) -> str:
    return f"{figure:.3g}" if isinstance(figure, float) else str(figure)
