"""What every benchmark does with its rows and bars: print which bars hold, and write one result file."""

import datetime
import json
import pathlib
import platform
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def gpus():
    """The machine's GPUs, as its result files name it; a benchmark that asks for them ends where there are none."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        names = subprocess.run(query, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        names = []
    names = [name.strip() for name in names if name.strip()]
    if not names:
        sys.exit("this benchmark needs an NVIDIA GPU (nvidia-smi)")
    return names[0] if len(names) == 1 else f"{len(names)} {names[0]}"


def commit():
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=SOURCE, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def name_for(benchmark, machine):
    """The result file of a benchmark that is kept for each kind of machine."""
    return f"{benchmark}_" + re.sub(r"[^a-z0-9]+", "_", machine.lower()).strip("_")


def ratio_text(ratio, limit):
    """Two digits, or three where two would read as the limit itself."""
    text = f"{ratio:.2f}"
    return text if ratio == limit or text != f"{limit:.2f}" else f"{ratio:.3f}"


def as_text(result):
    """The result as JSON with a line a row, so that a new measurement changes few lines."""
    head = {key: value for key, value in result.items() if key not in ("rows", "bars")}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    for key in ("rows", "bars"):
        entries = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in result[key])
        lines.append(f' "{key}": [\n{entries}\n ]' + ("," if key == "rows" else ""))
    return "{\n" + "\n".join(lines) + "\n}\n"


def report(benchmark, rows, bars, write, machine=None, file_name=None, measured_commit=None):
    """Writes bench/results/<file_name or benchmark>.json if asked, of this machine's processor and HEAD unless told."""
    for bar in bars:
        print(f"{'holds' if bar['holds'] else 'FAILS'}: {bar['name']}: {bar['asks']}: {bar['figure']}")
    result = {
        "benchmark": benchmark,
        "machine": machine or processor(),
        "commit": measured_commit or commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "rows": rows,
        "bars": bars,
    }
    if write:
        target = SOURCE / "bench" / "results" / f"{file_name or benchmark}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(as_text(result))
    return result
