"""Programs on GPU memory: their own staging through host memory, and gapless in its place.

Each program runs on an MPI library that reads no GPU memory, a rank a GPU, and checks its own result. `--programs DIR`
has a folder for each library and program, with executables and shared libraries as they were compiled for that library:
DIR/mpich/heffte, DIR/openmpi/cloverleaf. tests/programs/gpu_programs.py names the sources.
"""

import dataclasses
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import _arguments
import _launch
from _report import gpus, report
from messages import LAUNCH

MOST_SECONDS = 60  # of a run
CUDA = "/usr/local/cuda/lib64"
# A GPU for each rank, whatever the program chooses.
OWN_GPU = 'export CUDA_VISIBLE_DEVICES=$((${PMI_RANK:-$OMPI_COMM_WORLD_RANK} % $GPUS)); exec "$@"'


@dataclasses.dataclass(frozen=True)
class Program:
    """`words` run on GPU memory with `direct` appended, and stage their messages themselves with `staging` appended. A
    run is right where `passed` is found, and took the seconds that `figure` finds last."""

    name: str
    case: str
    words: str
    direct: str
    staging: str
    passed: str
    figure: str


def programs():
    exchanges = {"-a2a": "Alltoall", "-a2av": "Alltoallv", "-p2p_pl": "Isend, Irecv"}
    for side, exchange in [(256, "-a2a"), (256, "-a2av"), (256, "-p2p_pl"), (512, "-a2a")]:
        words = f"speed3d_c2c cufft double {side} {side} {side} {exchange} -n10"
        case = f"FFT of {side}^3, {exchanges[exchange]}"
        yield Program("heFFTe", case, words, "", "-no-gpu-aware", "Max error", r"Time per run: *([\d.e+-]+)")
    for deck, cells in (("clover_bm_short", "960^2"), ("clover_bm16_short", "3840^2")):
        words = f"cloverleaf --file {{}}/InputDecks/{deck}.in --staging-buffer"
        case = f"hydrodynamics, {cells} cells"
        yield Program("CloverLeaf", case, words, "false", "true", "considered PASSED", r"Wall clock *([\d.e+-]+)")


def seconds(program, folder, words, launch, environment):
    name, *arguments = f"{program.words} {words}".replace("{}", str(folder)).split()
    with tempfile.TemporaryDirectory() as place:  # for the files that the program writes
        said = subprocess.run(
            [*launch, "sh", "-c", OWN_GPU, "sh", str(folder / name), *arguments],
            cwd=place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MOST_SECONDS,
        ).stdout
    if not re.search(program.passed, said) or re.search("ERROR|NOT PASSED", said):
        sys.exit(f"{program.words} {words}: {said[-2000:]}")
    return float(re.findall(program.figure, said)[-1])


def measure(build, mpi, folder, ranks, rounds, gpu_count):
    """A row for each program of the folder."""
    prefix = _launch.prefix_of(build, mpi)
    launch = [f"{prefix}/bin/mpiexec", "-n", str(ranks), *LAUNCH[mpi], "env", f"GPUS={gpu_count}"]
    preload = [f"LD_PRELOAD={build}/lib/libgapless.so", "GAPLESS_ALL_RANKS=1"]  # as `gapless run` sets them
    for program in programs():
        place = folder / program.name.lower()
        if not place.is_dir():
            continue
        environment = _launch.environment(mpi, prefix, [str(place), CUDA])
        staging, gapless = [], []
        for _ in range(rounds):
            staging.append(seconds(program, place, program.staging, launch, environment))
            gapless.append(seconds(program, place, program.direct, launch + preload, environment))
        ms, staging_ms = (1e3 * statistics.median(each) for each in (gapless, staging))
        case = {"library": mpi, "program": program.name, "case": program.case, "ranks": ranks}
        print(f"{mpi:>8} {program.case:>28}: {ms:9.2f} ms, staging itself {staging_ms:9.2f} ms", flush=True)
        yield {"case": case, "value": ms, "unit": "ms", "peers": {"its own staging": staging_ms}}


def bars(rows):
    for library in dict.fromkeys(row["case"]["library"] for row in rows):
        of_library = [row for row in rows if row["case"]["library"] == library]
        ratios = {row["case"]["case"]: row["value"] / row["peers"]["its own staging"] for row in of_library}
        worst = max(ratios, key=ratios.get)
        yield {
            "name": f"programs on GPU memory, {library}",
            "asks": "no slower than staging their messages themselves",
            "figure": f"{ratios[worst]:.2f} of the time ({worst})",
            "holds": ratios[worst] <= 1.0,
        }


def main():
    parser = _arguments.parser(__doc__, LAUNCH)
    parser.add_argument("--programs", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each way, in turn")
    options = parser.parse_args()
    machine = gpus()
    count = int(machine.split()[0]) if machine[0].isdigit() else 1
    folders = {mpi: (options.programs / mpi).resolve() for mpi in options.mpi or LAUNCH}
    rows = [
        row
        for mpi, folder in folders.items()
        for row in measure(options.build.resolve(), mpi, folder, options.ranks, options.rounds, count)
    ]
    if not rows:
        sys.exit(f"{options.programs} has none of the programs")
    report("gpu_programs", rows, list(bars(rows)), not options.no_write, machine=machine)


if __name__ == "__main__":
    main()
