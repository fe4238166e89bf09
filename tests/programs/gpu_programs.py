"""Programs that nobody here wrote, on GPU memory, with an MPI library that reads none: each checks its own data.

Run on a machine with a GPU: `gpu_programs.py --mpi-prefix P --preload libgapless.so --programs DIR`. DIR has a folder
for each program, with its executables and shared libraries as they were compiled for that MPI; a program without a
folder is left out. Without gapless all of them crash or fail. The outcome is written to bench/results.

  heffte      heFFTe 2.4.1, -DHeffte_ENABLE_CUDA=ON: test/*, benchmarks/speed3d_*
  comb        LLNL Comb 0.3.1, CUDA without RAJA: comb
  jacobi      NVIDIA multi-gpu-programming-models, mpi and mpi_overlap, SKIP_CUDA_AWARENESS_CHECK=1, float and double:
              jacobi_mpi, jacobi_mpi_overlap, jacobi_mpi_double, jacobi_mpi_overlap_double
  cudecomp    cuDecomp 0.7: transpose_test_*, halo_test_*, and cases/, files of test cases in the manner of its
              test_runner.py
  cloverleaf  CloverLeaf of UoB-HPC, model cuda, with cudaMalloc and as cloverleaf_managed: and InputDecks/
"""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests" / "support"), str(SOURCE / "bench")]

import _report  # noqa: E402  (found through the line above)
from oversubscribed import ENVIRONMENT  # noqa: E402

TIME_LIMIT = 90  # seconds a command


@dataclasses.dataclass(frozen=True)
class Command:
    """A run has passed where its status is 0, `wanted` matches so many lines or more, and `unwanted` none."""

    ranks: int
    words: str
    wanted: str
    lines: int = 1
    unwanted: str = "ERROR|FAIL"


def heffte():
    of_tests = {
        "test_reshape3d": (4,),
        **{f"test_fft3d_np{ranks}": (ranks,) for ranks in (1, 2, 4, 6)},
        "test_fft3d_r2c": (1, 2, 4, 6),
        "test_cos_transform": (1, 2, 4),
        "test_longlong": (4,),
        "test_streams": (6,),
        "test_subcomm": (8,),
    }
    for test, ranks in of_tests.items():
        yield from (Command(each, test, wanted="  pass$", lines=2, unwanted="  fail$") for each in ranks)
    shapes = ["cufft double 256 256 256 {}", "cufft float 128 120 112 {} -slabs -no-reorder -batch 3"]
    for ranks in (2, 4):
        for exchange in ("-a2a", "-a2av", "-p2p", "-p2p_pl"):
            for shape in shapes:
                for kind in ("c2c", "r2c"):
                    words = f"speed3d_{kind} {shape.format(exchange)}"
                    yield Command(ranks, words, wanted="Max error", unwanted="ERROR|nan")


def comb():
    base = "-ghost 1_1_1 -periodic 1_1_1 -cycles 10 -comm cutoff 250 -cuda_aware_mpi"
    base += "".join(f" -exec enable {way}" for way in ("seq", "cuda", "mpi_type"))
    base += "".join(f" -memory disable {memory}" for memory in ("host", "cuda_hostpinned"))
    base += "".join(f" -memory enable {memory}" for memory in ("cuda_device", "cuda_managed"))
    base += " -comm disable mock -comm enable mpi -comm enable mpi_persistent"
    meshes = {2: "24_24_24 -divide 2_1_1", 4: "48_48_24 -divide 2_2_1"}
    for how in ("wait_any", "wait_some", "wait_all", "test_any", "test_some", "test_all"):
        ways = "".join(f" -comm {what} {how}" for what in ("post_recv", "post_send", "wait_recv", "wait_send"))
        for ranks, fields in ((2, 1), (2, 3), (4, 3)):
            yield of_comb(ranks, f"{meshes[ranks]} -vars {fields} {base}{ways}")
    yield of_comb(2, f"200_200_200 -divide 2_1_1 -vars 8 {base}")
    yield of_comb(4, f"200_200_200 -divide 2_2_1 -vars 8 {base} -ghost 2_2_2")
    unfused = "".join(f" -comm disallow {what}_pack_fusing" for what in ("per_message", "message_group"))
    yield of_comb(4, f"{meshes[4]} -vars 3 {base}{unfused}")
    yield of_comb(2, f"{meshes[2]} -vars 3 {base} -memory enable all")


def of_comb(ranks, words):
    unwanted = "Error performing|Assertion|test (pre|post)-comm|Invalid|Unknown option"
    return Command(ranks, f"comb {words}", wanted="^Starting test Comm", lines=16, unwanted=unwanted)


def jacobi():
    for which in ("mpi", "mpi_double", "mpi_overlap", "mpi_overlap_double"):
        for ranks in (2, 4):
            for columns, rows, steps in ((256, 514, 5000), (4096, 4098, 500), (262144, 66, 200)):
                words = f"jacobi_{which} -nx {columns} -ny {rows} -niter {steps}"
                yield Command(ranks, words, wanted=f"Num GPUs: {ranks}")


def cudecomp():
    for ranks in (2, 4):
        for test in ("transpose", "halo"):
            for number in ("R32", "R64", "C32", "C64"):
                words = f"{test}_test_{number} -f {{}}/cases/{test}_np{ranks}.txt"
                yield Command(ranks, words, wanted="Passed all tests", unwanted="FAILED|error")


def cloverleaf():
    for memory in ("cloverleaf", "cloverleaf_managed"):
        for deck in ("clover_bm_short", "clover_bm4_short", "clover_bm16_very_short"):
            for ranks in (2, 4):
                words = f"{memory} --staging-buffer false --file {{}}/InputDecks/{deck}.in"
                yield Command(ranks, words, wanted="considered PASSED", unwanted="NOT PASSED|FAILED")


PROGRAMS = {make.__name__: make for make in (heffte, comb, jacobi, cudecomp, cloverleaf)}


def failure(command, folder, options, seconds):
    """What went wrong; nothing if the command has passed."""
    libraries = os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")])
    environment = os.environ | ENVIRONMENT | {"LD_LIBRARY_PATH": libraries}
    program, *arguments = command.words.replace("{}", str(folder)).split()
    launch = [options.mpi_prefix / "bin" / "mpiexec", "-n", str(command.ranks)]
    launch += ["env", f"LD_PRELOAD={options.preload}", "GAPLESS_ALL_RANKS=1", folder / program, *arguments]
    with tempfile.TemporaryDirectory() as place:
        try:
            done = subprocess.run(
                launch,
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return f"takes more than {seconds} s"
    said = done.stdout
    if unwanted := re.search(f".*(?:{command.unwanted}).*", said, re.MULTILINE):
        return f"says {unwanted[0][:200]}"
    if done.returncode != 0:
        return f"ends with {done.returncode}: {said[-300:]}"
    found = len(re.findall(command.wanted, said, re.MULTILINE))
    return "" if found >= command.lines else f"says {command.wanted!r} {found} times, not {command.lines}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi-prefix", type=pathlib.Path, required=True)
    parser.add_argument("--preload", required=True, help="libgapless.so")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="compiled for that MPI, a folder for each")
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="may be given several times")
    options = parser.parse_args()
    folders = {name: (options.programs / name).resolve() for name in options.only or PROGRAMS}
    found = {name: folder for name, folder in folders.items() if folder.is_dir()}
    if not found:
        sys.exit(f"{options.programs} has none of {', '.join(folders)}")

    rows = []
    mpi = options.mpi_prefix.name
    for name, folder in found.items():
        commands = list(PROGRAMS[name]())
        failed = 0
        for command in commands:
            if why := failure(command, folder, options, TIME_LIMIT):
                failed += 1
                print(f"{name}, {command.ranks} ranks: {command.words}\n  {why}", flush=True)
        rows.append({"case": {"program": name}, "runs": len(commands), "failed": failed})
        print(f"{name}: {len(commands)} runs, {failed} failed", flush=True)
    runs, failed = (sum(row[what] for row in rows) for what in ("runs", "failed"))
    bar = {
        "name": f"{', '.join(found)} on GPU memory, {mpi}",
        "asks": "find their data right",
        "figure": f"{runs - failed} of {runs} runs do",
        "holds": failed == 0,
    }
    machine = _report.gpus()
    _report.report(f"gpu_programs_{mpi}", rows, [bar], True, machine, _report.name_for(f"gpu_programs_{mpi}", machine))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
