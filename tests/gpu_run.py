"""Runs every test labelled `gpu`, and the GPU micro benchmarks, on a machine with a GPU; prints what each test and
benchmark says, and writes one JSON result: how many tests passed, and which did not.

    gpu_run.py pack BUILD BUNDLE    collect what is needed from a build directory, to be carried to another machine
    gpu_run.py run BUNDLE           run it there
    gpu_run.py run BUILD            or run in a build directory of this machine

The exit status is 0 only if every test passed. On a machine with a GPU a skipped test is a failed one, but for those
that need a second GPU where there is one.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

LISTING = "gpu_tests.json"
MPIS = ["mpich", "openmpi"]
BENCHMARKS = ["device_query"]
ABSENT = "needs two GPUs"
SOURCE = pathlib.Path(__file__).resolve().parents[1]


def commit():
    answer = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return answer.stdout.strip() or "unknown"


def mpi_prefixes(build):
    """Where the MPI libraries are that the tests were built for."""
    cache = (build / "CMakeCache.txt").read_text()
    found = {mpi: re.search(rf"^GAPLESS_{mpi.upper()}_PREFIX:\w+=(.+)$", cache, re.MULTILINE) for mpi in MPIS}
    return {mpi: match.group(1) for mpi, match in found.items() if match}


def listing(build):
    """What CTest would run for the label, with the places of this machine replaced by names."""
    prefixes = mpi_prefixes(build)
    command = ["ctest", "--test-dir", build, "-L", "^gpu$", "--show-only=json-v1"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def portable(text):
        for mpi, prefix in prefixes.items():
            text = text.replace(prefix + "/", f"{{{mpi}}}/")
        return text.replace(str(build), "{build}").replace(str(SOURCE), "{source}")

    tests = []
    for test in answer["tests"]:
        if "command" not in test:
            raise SystemExit(f"{test['name']} is not built: build everything first")
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        if properties.get("DISABLED"):
            continue  # the other process of another test
        tests.append(
            {
                "name": test["name"],
                "command": [portable(word) for word in test["command"]],
                "environment": [portable(entry) for entry in properties.get("ENVIRONMENT", [])],
                "skip": properties.get("SKIP_REGULAR_EXPRESSION", [r"\[  SKIPPED \]"]),
                "timeout": properties.get("TIMEOUT", 300),
                "serial": properties.get("RUN_SERIAL", False),
                "two_gpus": "two_gpus" in properties.get("LABELS", []),
            }
        )
    return {"commit": commit(), "prefixes": prefixes, "tests": tests}


def pack(build, bundle):
    tests = listing(build)
    for folder in ("bin", "lib"):
        (bundle / folder).mkdir(parents=True, exist_ok=True)
    words = [word for test in tests["tests"] for word in test["command"]]
    programs = {pathlib.Path(word).name for word in words if word.startswith("{build}/bin/")}
    for name in programs.union(BENCHMARKS):
        if (build / "bin" / name).exists():
            copy_stripped(build / "bin" / name, bundle / "bin" / name)
    for library in (build / "lib").glob("*.so*"):
        copy_stripped(library, bundle / "lib" / library.name)
    for mpi, prefix in tests["prefixes"].items():
        pack_mpi(pathlib.Path(prefix), bundle / mpi)
    (bundle / LISTING).write_text(json.dumps(tests, indent=1))
    size = sum(f.stat().st_size for f in bundle.rglob("*") if f.is_file())
    print(f"{bundle}: {len(tests['tests'])} tests, {size >> 20} MiB")


def pack_mpi(prefix, destination):
    """The launchers and libraries of an MPI, without what else is installed under its prefix."""
    for pattern in ("bin/mpiexec*", "bin/mpirun", "bin/hydra_*", "bin/prte*", "bin/*run_wrapper", "lib/*.so*"):
        for file in prefix.glob(pattern):
            (destination / file.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, destination / file.parent.name)
    for folder in ("lib/mpich", "lib/openmpi", "share", "etc"):
        if (prefix / folder).is_dir():
            shutil.copytree(prefix / folder, destination / folder, dirs_exist_ok=True)


def copy_stripped(source, destination):
    shutil.copy2(source, destination)
    subprocess.run(["strip", "--strip-debug", destination], check=False)


def run_test(test, build, prefixes, gpus):
    if test["two_gpus"] and gpus < 2:
        print(f"skipped            {test['name']}: {ABSENT}", flush=True)
        return {"case": {"test": test["name"]}, "outcome": ABSENT}

    def local(text):
        for mpi, prefix in prefixes.items():
            text = text.replace(f"{{{mpi}}}", prefix)
        return text.replace("{build}", str(build)).replace("{source}", str(SOURCE))

    environment = dict(os.environ, GAPLESS_TEST_PLUGIN_DIRECTORY=str(build / "lib"))
    environment.update(entry.split("=", 1) for entry in map(local, test["environment"]))
    used = [prefix for mpi, prefix in prefixes.items() if test["command"][0].startswith(f"{{{mpi}}}")]
    environment["LD_LIBRARY_PATH"] = ":".join([f"{prefix}/lib" for prefix in used] + inherited_library_path())
    start = time.monotonic()
    try:
        done = subprocess.run(
            [local(word) for word in test["command"]],
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=test["timeout"],
        )
        output = done.stdout + done.stderr
        outcome = "passed" if done.returncode == 0 else "failed"
        if outcome == "passed" and any(re.search(pattern, output) for pattern in test["skip"]):
            outcome = ABSENT if gpus < 2 and ABSENT in output else "skipped"
    except subprocess.TimeoutExpired as late:
        output, outcome = str(late), "failed"
    seconds = time.monotonic() - start
    print(f"{outcome:8} {seconds:7.2f} s  {test['name']}", flush=True)
    if outcome != "passed":
        print(output[-3000:], flush=True)
    return {"case": {"test": test["name"]}, "outcome": outcome}


def inherited_library_path():
    return [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]


def run_benchmark(program):
    if program.exists():
        print(f"--- {program.name}", flush=True)
        subprocess.run([program], timeout=300)


def gpu():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        names = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().splitlines()
    except (OSError, subprocess.CalledProcessError):
        return {"gpu": "none", "driver": "none", "gpus": 0}
    name, driver = (part.strip() for part in names[0].split(","))
    return {"gpu": name, "driver": driver, "gpus": len(names)}


def run(build, output, benchmarks, jobs):
    stored = build / LISTING
    tests = json.loads(stored.read_text()) if stored.exists() else listing(build)
    # A bundle carries its MPI libraries along.
    prefixes = {m: str(build / m) if (build / m).is_dir() else prefix for m, prefix in tests["prefixes"].items()}
    machine = gpu()

    def outcome_of(test):
        return run_test(test, build, prefixes, machine["gpus"])

    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(outcome_of, (test for test in tests["tests"] if not test["serial"])))
    rows += [outcome_of(test) for test in tests["tests"] if test["serial"]]
    outcomes = ("passed", "failed", "skipped", ABSENT)
    counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in outcomes}
    for name in BENCHMARKS if benchmarks else []:
        run_benchmark(build / "bin" / name)
    result = {
        "benchmark": "gpu_tests",
        "machine": machine["gpu"],
        "commit": tests["commit"],
        "date": datetime.date.today().isoformat(),
        **machine,
        "counts": counts,
        "rows": [row for row in rows if row["outcome"] != "passed"],
        "bars": [
            {
                "name": "every GPU test passes",
                "asks": "0 failed, 0 skipped",
                "figure": f"{counts['failed']} failed, {counts['skipped']} skipped of {len(rows)}",
                "holds": counts["passed"] > 0 and counts["passed"] + counts[ABSENT] == len(rows),
            }
        ],
    }
    name = re.sub(r"[^a-z0-9]+", "_", machine["gpu"].lower()).strip("_")
    path = output or SOURCE / "bench" / "results" / f"gpu_tests_{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped; {path}")
    return 0 if result["bars"][0]["holds"] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="action", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("build", type=pathlib.Path)
    packing.add_argument("bundle", type=pathlib.Path)
    running = commands.add_parser("run")
    running.add_argument("build", type=pathlib.Path, help="a bundle or a build directory")
    running.add_argument(
        "--output", type=pathlib.Path, help="the JSON file; default bench/results/gpu_tests_<gpu>.json"
    )
    running.add_argument("--no-benchmarks", action="store_true")
    running.add_argument("--jobs", type=int, default=1, help="tests at a time (1)")
    arguments = parser.parse_args()
    if arguments.action == "pack":
        return pack(arguments.build.resolve(), arguments.bundle.resolve())
    return run(arguments.build.resolve(), arguments.output, not arguments.no_benchmarks, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
