#!/usr/bin/env python3
"""Halo exchanges of GPU memory: the forms of examples/halo3d between two processes under gapless, beside the best that
a program can make by hand on an MPI library that reads GPU memory.

    bench/halo.py BUILD_DIRECTORY [--mpi NAME] [--aware PREFIX] [--ranks N] [--no-write]

By hand, one launch packs all pieces, contiguous messages (or one MPI_Alltoallv) go from GPU to GPU, and one launch
unpacks; that needs --aware, an Open MPI that reads GPU memory. Each is a job of its own, and every point is checked: of
halo3d in another job, for what is checked between exchanges is not in the caches.
Writes bench/results/halo_gpu.json.
"""

import json
import pathlib
import subprocess
import sys

import _arguments
import _launch
from _report import gpus, report
from messages import AWARE, LAUNCH

BOXES = [(64, 1), (128, 2), (256, 3)]  # points a side, and how wide the halo is
ITERATIONS, CHECKED = 40, 3
MOST_SECONDS = 20  # of a job
FORMS = {
    "isend": "Isend and Irecv",
    "persistent": "Startall",
    "neighbor": "Neighbor_alltoallw",
    "pack": "Pack, Alltoallv",
}
BY_HAND = {"requests": "by hand, a message a piece", "alltoallv": "by hand, Alltoallv"}
ASKED, MOST_TIMES = ("isend", "neighbor"), 1.25
CUDA = "/usr/local/cuda/lib64"


def run(build, mpi, prefix, ranks, settings, program, library_path=()):
    environment = _launch.environment(mpi, prefix, library_path)
    command = [f"{prefix}/bin/mpiexec", "-n", str(ranks), *LAUNCH[mpi], "env", *settings, *program]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=MOST_SECONDS).stdout


def with_gapless(build, mpi, prefix, ranks, form, box):
    size, radius = box
    program = [str(build / "bin" / f"halo3d-{mpi}"), "--device", "--mode", form, "--size", str(size)]
    program += ["--radius", str(radius)]
    settings = [f"LD_PRELOAD={build}/lib/libgapless.so", "GAPLESS_ALL_RANKS=1"]  # as `gapless run` sets them
    for iterations, verified in ([str(CHECKED)], "yes"), ([str(ITERATIONS), "--no-verify"], "no"):
        output = run(build, mpi, prefix, ranks, settings, [*program, "--iterations", *iterations], [CUDA])
        fields = dict(word.split("=", 1) for word in output.split() if "=" in word)
        if fields.get("verified") != verified:
            sys.exit(f"{mpi}, {form}, {size}^3: {output}")
    return float(fields["median_us"]), int(fields["bytes"])


def by_hand(build, prefix, ranks, how, box):
    program = [str(build / "bin" / "halo_by_hand_openmpi"), *map(str, box), str(ITERATIONS), how]
    output = run(build, "openmpi", prefix, ranks, [], program, [f"{build}/lib"])
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not lines or "us" not in lines[0]:
        sys.exit(f"by hand, {how}: {output}")
    return lines[0]["us"]


def bars(rows):
    for form in ASKED:
        for library in dict.fromkeys(row["case"]["library"] for row in rows):
            ratios = {
                f"{row['case']['points']}^3": row["value"] / min(row["peers"].values())
                for row in rows
                if row["case"]["library"] == library and row["case"]["form"] == FORMS[form] and row["peers"]
            }
            if not ratios:
                continue
            worst = max(ratios, key=ratios.get)
            yield {
                "name": f"halos of GPU memory by {FORMS[form]}, {library}",
                "asks": f"at most {MOST_TIMES} times the best by hand on the GPU-aware library",
                "figure": f"{ratios[worst]:.2f} ({worst})",
                "holds": ratios[worst] <= MOST_TIMES,
            }


def main():
    parser = _arguments.parser(__doc__, LAUNCH)
    parser.add_argument("--aware", type=pathlib.Path, metavar="PREFIX", help="of an Open MPI that reads GPU memory")
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    build = options.build.resolve()
    libraries = [
        (mpi, mpi, _launch.prefix_of(build, mpi))
        for mpi in options.mpi or LAUNCH
        if (build / "bin" / f"halo3d-{mpi}").exists()
    ]
    peers = {box: {} for box in BOXES}
    if options.aware:
        aware = options.aware.resolve()
        libraries.append((AWARE, "openmpi", aware))
        for box in BOXES:
            peers[box] = {name: by_hand(build, aware, options.ranks, how, box) for how, name in BY_HAND.items()}
    rows = []
    for name, mpi, prefix in libraries:
        for form, words in FORMS.items():
            for box in BOXES:
                try:
                    us, bytes_ = with_gapless(build, mpi, prefix, options.ranks, form, box)
                except subprocess.TimeoutExpired:
                    print(f"{name:>20} {words:>20} {box[0]:4}^3, {box[1]} wide: more than {MOST_SECONDS} s", flush=True)
                    continue
                case = {"library": name, "form": words, "points": box[0], "width": box[1], "bytes": bytes_}
                best = min(peers[box].values(), default=us)
                rows.append({"case": case, "value": us, "unit": "us", "bound": best, "peers": peers[box]})
                text = ", ".join(f"{peer} {peer_us:.0f}" for peer, peer_us in peers[box].items())
                print(f"{name:>20} {words:>20} {box[0]:4}^3, {box[1]} wide: {us:9.1f} us   {text}", flush=True)
    if not rows:
        sys.exit(f"no program halo3d-<mpi> is built in {options.build}")
    report("halo", rows, list(bars(rows)), not options.no_write, machine=gpus(), file_name="halo_gpu")


if __name__ == "__main__":
    main()
