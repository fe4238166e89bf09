"""mpi4py's own test suite with gapless and without: every test must end the same way in both.

The suite comes from mpi4py's source package, fetched from PyPI once and kept in the cache directory, as are the
outcomes without gapless. Where every test of a module passes with gapless, and the suite comes to its end, nothing is
left to be compared: that module is not run without. Tests that end differently are run once more, both ways: some fail
now and then by themselves.

With --gpu, the modules that move arrays run on GPU memory, too: on CuPy's arrays, or, with --plugin, on those of a
stand-in for CuPy in the memory of a simulated GPU. Without gapless no library could read these, so tests that fail are
compared with host memory. The outcome on a GPU is written to bench/results.
"""

import argparse
import collections
import fcntl
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
SUPPORT = SOURCE / "tests" / "support"
sys.path[:0] = [str(SUPPORT), str(SOURCE / "bench")]

import _report  # noqa: E402  (found through the line above)
from oversubscribed import ENVIRONMENT  # noqa: E402

VERSION = "4.1.2"
TIME_LIMIT = 400


# Open MPI takes minutes for these at two ranks: they are run at one, where nothing else is.
AT_ONE_RANK = {"openmpi": ["test_spawn", "test_util_dtlib"], "mpich": []}


SIMULATED = pathlib.Path(__file__).with_name("simulated")


def left_out(mpi: str, ranks: int) -> list[str]:
    """Modules that neither run includes."""
    return AT_ONE_RANK[mpi] if ranks > 1 else []


def included(mpi: str, ranks: int) -> list[str]:
    """Modules that both runs are limited to, if any are named."""
    return AT_ONE_RANK[mpi] if ranks == 1 else []


def test_directory(cache: pathlib.Path, python: pathlib.Path) -> pathlib.Path:
    tests = cache / f"mpi4py-{VERSION}" / "test"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:  # other runs of the suite may want it at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (tests / "main.py").exists():
            # Only mpi4py itself from source: "--no-binary :all:" would build its build tools from source, too.
            package = ["--no-binary", "mpi4py", "--no-deps", f"mpi4py=={VERSION}"]
            subprocess.run([python, "-m", "pip", "download", "-q", "-d", cache, *package], check=True)
            with tarfile.open(cache / f"mpi4py-{VERSION}.tar.gz") as archive:
                archive.extractall(cache)
    return tests


def moves_arrays(module: pathlib.Path) -> bool:
    return module.name.startswith("test_") and "import arrayimpl" in module.read_text()


class Suite:
    def __init__(self, options):
        self.prefix, self.ranks, self.cache = options.mpi_prefix, options.ranks, options.cache.absolute()
        self.preload = options.preload
        self.python = options.python or self.prefix / "bin" / "python"
        self.tests = test_directory(self.cache, self.python)
        self.left_out, self.included = left_out(self.prefix.name, self.ranks), included(self.prefix.name, self.ranks)
        self.gpu, self.plugin = options.gpu, options.plugin
        if self.gpu:
            self.left_out, self.included = [], [m.stem for m in sorted(self.tests.glob("*.py")) if moves_arrays(m)]

    def environment(self, on_gpu):
        """All ranks run gapless, which the exchanges from GPU to GPU need to know."""
        made = {**os.environ, **ENVIRONMENT}
        if on_gpu and self.plugin:
            paths = [str(SIMULATED), str(self.tests), str(SUPPORT), made.get("PYTHONPATH", "")]
            made |= {"GAPLESS_DEVICE_PLUGIN": self.plugin, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        return made | ({"GAPLESS_ALL_RANKS": "1"} if on_gpu else {})

    def run(self, name, preload, include=()):
        """Outcomes by (rank, test), and whether the suite came to its end; a test that never ended "crashed"."""
        on_gpu = self.gpu and preload is not None
        output = self.cache / f"{name}-{self.prefix.name}-np{self.ranks}{'-gpu' if self.gpu else ''}"
        for old in self.cache.glob(output.name + ".*.jsonl"):
            old.unlink()
        command = [self.prefix / "bin" / "mpiexec", "-n", str(self.ranks)]
        if preload:
            command += ["env", f"LD_PRELOAD={preload}"]
        command += [self.python, "-B", pathlib.Path(__file__).with_name("outcomes.py"), output, self.tests, "-q"]
        command += ["--cupy"] if on_gpu else []
        for module in self.left_out:
            command += ["-e", rf"{module}\.py"]
        for module in include or self.included:
            command += ["-i", rf"{module}\.py"]
        ended = False
        with output.with_suffix(".log").open("w") as log:
            try:
                environment = self.environment(on_gpu)
                done = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=TIME_LIMIT)
                ended = done.returncode in (0, 1)  # 1: tests have failed
            except subprocess.TimeoutExpired:
                print(f"{name}: stopped after {TIME_LIMIT} s; the tests then running count as crashed")
        outcomes = {}
        for rank in range(self.ranks):
            path = output.with_name(f"{output.name}.{rank}.jsonl")
            if not path.exists():
                sys.exit(f"{name}: rank {rank} never started; see {output.with_suffix('.log')}")
            entries = [json.loads(line) for line in path.read_text().splitlines()]
            if entries and entries[-1] == {"end": True}:
                entries.pop()
            else:
                ended = False
            for entry in entries:
                outcomes[f"rank {rank}: {entry['test']}"] = (entry.get("outcome", "crashed"), entry.get("seconds", 0))
        return outcomes, ended

    def plain(self, modules):
        """Outcomes without gapless, of some modules or, if none are named, of all."""
        library = max((self.prefix / "lib").glob("libmpi.so.*"))
        depends_on = f"{VERSION} {self.left_out} {self.included} {modules} {library} {library.stat().st_mtime_ns}"
        key = hashlib.sha256(depends_on.encode()).hexdigest()[:12]
        kept = self.cache / f"plain-{self.prefix.name}-np{self.ranks}-{key}.json"
        if not kept.exists():
            kept.write_text(json.dumps(self.run("plain", None, modules)[0]))
        return {test: tuple(outcome) for test, outcome in json.loads(kept.read_text()).items()}


def differences(plain, gapless):
    unknown = ("did not run", 0)
    return {
        test: (plain.get(test, unknown)[0], gapless.get(test, unknown)[0])
        for test in sorted(plain.keys() | gapless.keys())
        if plain.get(test, unknown)[0] != gapless.get(test, unknown)[0]
    }


def module_of(test: str) -> str:
    return test.split(": ", 1)[1].split(".", 1)[0]


def show(name, outcomes):
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    modules = collections.Counter()
    for test, (_, seconds) in outcomes.items():
        modules[module_of(test)] += seconds
    slowest = ", ".join(f"{module} {seconds:.0f} s" for module, seconds in modules.most_common(5))
    print(f"{name:8} {dict(counts)}; slowest: {slowest}")


def compare(suite, gapless, modules):
    """The tests, of some modules or, if none are named, of all, that twice did not end as they do without gapless."""
    plain = suite.plain(modules)
    show("plain", plain)
    different = differences(
        plain, {test: outcome for test, outcome in gapless.items() if not modules or module_of(test) in modules}
    )
    if not different:
        return different
    modules = sorted({module_of(test) for test in different})
    print(f"{len(different)} tests ended differently; once more, both ways: {', '.join(modules)}")
    again = differences(
        suite.run("plain-again", None, modules)[0], suite.run("gapless-again", suite.preload, modules)[0]
    )
    for test in different.keys() - again.keys():
        print(f"  not again: {test}: {different[test][0]} without gapless, {different[test][1]} with it")
    return again


def report(suite, gapless, different):
    machine, mpi = _report.gpus(), suite.prefix.name
    passed = sum(outcome == "passed" for outcome, _ in gapless.values())
    rows = [{"case": {"test": test}, "outcome": outcomes[1]} for test, outcomes in different.items()]
    bar = {
        "name": f"mpi4py's tests that move arrays, on CuPy's, {mpi}, {suite.ranks} ranks",
        "asks": "end as on host memory without gapless",
        "figure": f"{passed} of {len(gapless)} passed, {len(different)} end differently",
        "holds": not different,
    }
    _report.report(f"mpi4py_{mpi}", rows, [bar], True, machine, _report.name_for(f"mpi4py_{mpi}", machine))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi-prefix", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--preload", required=True, help="libgapless.so")
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument(
        "--python", type=pathlib.Path, help="with mpi4py for that MPI; default: the one under the prefix"
    )
    parser.add_argument("--gpu", action="store_true", help="run the modules that move arrays on GPU memory, too")
    parser.add_argument("--plugin", help="libgapless-simulated-device.so, where there is no GPU")
    options = parser.parse_args()

    suite = Suite(options)
    print("left out with and without gapless:", ", ".join(suite.left_out) or "nothing")
    gapless, ended = suite.run("gapless", suite.preload)
    show("gapless", gapless)
    to_compare = sorted({module_of(test) for test, (outcome, _) in gapless.items() if outcome != "passed"})
    if ended and not to_compare:
        print("every test passed: nothing to compare")
        different = {}
    else:
        # What a suite that was cut short has not come to is compared as well.
        different = compare(suite, gapless, to_compare if ended else [])
    for test, (without, with_gapless) in different.items():
        print(f"  {test}: {without} without gapless, {with_gapless} with it")
    if options.gpu and not options.plugin:
        report(suite, gapless, different)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
