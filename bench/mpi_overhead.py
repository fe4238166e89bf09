#!/usr/bin/env python3
"""What gapless costs where it does not help: calls that go straight through, and making datatypes.

    bench/mpi_overhead.py BUILD_DIRECTORY [--repeats N] [--no-write]

Calls are timed with and without gapless inside one process, and where there is a GPU also in a process that holds a
CUDA context. So is making datatypes, where gapless intercepts MPI_Type_free; that is shown for alternating processes
with and without gapless as well, and not judged: two processes differ, by up to 40 % on some machines, whatever they
preload. Writes bench/results/mpi_overhead.json, or mpi_overhead_beside_gpu.json where there is a GPU.
"""

import json
import pathlib
import statistics
import subprocess

import _arguments
import _launch
from _report import report
from host_pack import LAUNCH

WITHOUT_GPU = "uses no GPU"
BESIDE_GPU = "uses no GPU, where there is one"
WITH_GPU = "uses a GPU"
PASS_THROUGH_BARS = [
    (WITHOUT_GPU, "pass-through", 20),
    (BESIDE_GPU, "pass-through in a process that uses no GPU, on a machine that has one", 60),
]
PASS_THROUGH_WITH_GPU = "pass-through in a process that uses a GPU"
NEEDS_A_QUERY = "pages of its own"  # only the driver knows whose they are
MAY_BE_HEADERS = {"MPI_Recv of 1 KiB": 5, "MPI_Irecv of 1 KiB and MPI_Wait": 10}
QUERY = "questions to the driver"
PROCESSES_PER_REPEAT = 2


def run(build, mpi, program, preload, *arguments):
    prefix = _launch.prefix_of(build, mpi)
    launcher, *options = LAUNCH[mpi]
    environment = _launch.environment(mpi, prefix)
    preloading = ["env", f"LD_PRELOAD={build / 'lib' / 'libgapless.so'}"] if preload else []
    command = [f"{prefix}/bin/{launcher}", *options, *preloading, str(build / "bin" / f"{program}_{mpi}"), *arguments]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def overhead_rows(build, mpi, repeats, process, *arguments):
    runs = [run(build, mpi, "mpi_overhead", True, *arguments) for _ in range(repeats)]
    assert all(row["interposed"] for rows in runs for row in rows), "gapless was not preloaded"
    for rows in zip(*runs, strict=True):
        extra = statistics.median(row["gapless_ns"] - row["native_ns"] for row in rows)
        native = statistics.median(row["native_ns"] for row in rows)
        query = statistics.median(row["query_ns"] for row in rows) * rows[0]["buffers"]
        yield {
            "case": {
                "call": rows[0]["call"],
                "memory": rows[0]["memory"],
                "library": mpi,
                "process": process,
            },
            "value": round(extra, 2),
            "unit": "ns more a call",
            "bound": 0,
            "peers": {"the call itself": round(native, 2)} | ({QUERY: round(query, 2)} if query else {}),
        }


def create_rows(build, mpi, repeats):
    processes = PROCESSES_PER_REPEAT * repeats
    pairs = [(run(build, mpi, "type_create", True), run(build, mpi, "type_create", False)) for _ in range(processes)]
    for i, row in enumerate(pairs[0][0]):
        name = row["construction"]
        with_gapless, without = ([rows[i] for rows in side] for side in zip(*pairs, strict=True))
        by_ratio = sorted(with_gapless, key=lambda row: row["create_commit_free_ns"] / row["native_ns"])
        usual = by_ratio[len(by_ratio) // 2]
        yield {
            "case": {"create, commit, free": name, "library": mpi},
            "value": usual["create_commit_free_ns"],
            "unit": "ns",
            "bound": usual["native_ns"],
            "peers": {"the library's own functions": usual["native_ns"]},
        }
        yield {
            "case": {"create, commit, free, in two processes": name, "library": mpi},
            "value": round(statistics.median(row["create_commit_free_ns"] for row in with_gapless), 1),
            "unit": "ns",
            "bound": 0,
            "peers": {
                "a process without gapless": round(
                    statistics.median(row["create_commit_free_ns"] for row in without), 1
                )
            },
        }
        first_use = statistics.median(row["first_use_ns"] for row in with_gapless)
        yield {"case": {"first use": name, "library": mpi}, "value": first_use, "unit": "ns", "bound": 0, "peers": {}}


def pass_through_bars(rows):
    for process, name, limit in PASS_THROUGH_BARS:
        mine = [row for row in rows if row["case"].get("process") == process]
        values = [row["value"] for row in mine if row["case"]["call"] not in MAY_BE_HEADERS]
        if values:
            yield {
                "name": name,
                "asks": f"at most {limit} ns more a call",
                "figure": f"{max(values):.1f} ns",
                "holds": max(values) <= limit,
            }


def header_bars(rows):
    """Receives from 480 bytes on may be headers, which gapless looks for."""
    for call, limit in MAY_BE_HEADERS.items():
        mine = [row for row in rows if row["case"].get("call") == call and row["case"]["process"] != WITH_GPU]
        values = [row["value"] for row in mine]
        if values:
            yield {
                "name": f"{call}, which may be a header",
                "asks": f"at most {limit} ns more",
                "figure": f"{max(values):.1f} ns",
                "holds": max(values) <= limit,
            }


def bars_with_gpu(rows):
    """What is known to be host memory costs nothing; of other memory the driver is asked, once a buffer."""
    mine = [row for row in rows if row["case"].get("process") == WITH_GPU and row["case"]["call"] not in MAY_BE_HEADERS]
    values = [row["value"] for row in mine if row["case"]["memory"] != NEEDS_A_QUERY]
    if values:
        yield {
            "name": f"{PASS_THROUGH_WITH_GPU}, buffers on the heap, on the stack or static",
            "asks": "at most 20 ns more a call",
            "figure": f"{max(values):.1f} ns",
            "holds": max(values) <= 20,
        }
    values = [row["value"] - row["peers"].get(QUERY, 0) for row in mine if row["case"]["memory"] == NEEDS_A_QUERY]
    if values:
        yield {
            "name": f"{PASS_THROUGH_WITH_GPU}, other buffers",
            "asks": "at most one question to the driver a buffer, and 20 ns",
            "figure": f"questions and {max(values):.1f} ns",
            "holds": max(values) <= 20,
        }


def bars(rows):
    creates = [row["value"] / row["bound"] for row in rows if "create, commit, free" in row["case"]]
    uses = [row["value"] for row in rows if "first use" in row["case"]]
    return [
        *pass_through_bars(rows),
        *header_bars(rows),
        *bars_with_gpu(rows),
        {
            "name": "making datatypes",
            "asks": "at most 1.1 times native",
            "figure": f"{max(creates):.2f}",
            "holds": max(creates) <= 1.1,
        },
        {
            "name": "first use of a datatype",
            "asks": "at most 5 µs",
            "figure": f"{max(uses) / 1000:.2f} µs",
            "holds": max(uses) <= 5000,
        },
    ]


def main():
    parser = _arguments.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    build = options.build.resolve()
    has_gpu = pathlib.Path("/dev/nvidiactl").exists()
    rows = []
    for mpi in LAUNCH:
        if (build / "bin" / f"mpi_overhead_{mpi}").exists():
            rows += overhead_rows(build, mpi, options.repeats, BESIDE_GPU if has_gpu else WITHOUT_GPU)
            if has_gpu:
                rows += overhead_rows(build, mpi, options.repeats, WITH_GPU, "--gpu")
            rows += create_rows(build, mpi, options.repeats)
    for row in rows:
        case = ", ".join(f"{key} {value}" for key, value in row["case"].items())
        print(f"{case:96} {row['value']:9.1f} {row['unit']:15} {row['peers']}")
    file_name = "mpi_overhead_beside_gpu" if has_gpu else "mpi_overhead"
    report("mpi_overhead", rows, bars(rows), not options.no_write, file_name=file_name)


if __name__ == "__main__":
    main()
