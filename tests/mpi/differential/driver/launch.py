"""Runs cases under a launcher until each has an outcome, starting again behind those that crash or hang."""

import contextlib
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "support"))

from oversubscribed import ENVIRONMENT  # noqa: E402  (found through the line above)

# The layout of job.hpp.
FIELDS = ("state", "case", "stage", "checks", "detail", "packed", "under_gapless", "process")
SLOT = struct.Struct(f"{len(FIELDS)}q")
MAX_THREADS = 8
MAX_RANKS = 8
STARTING, RUNNING, DONE, SIGNAL, HEAP_DAMAGED, LEFT_EARLY = range(6)

SECONDS_TO_START = 120
SECONDS_WITHOUT_PROGRESS = 30

# Without copies from process to process, messages go in pieces through shared memory.
IN_PIECES = {"MPIR_CVAR_CH4_CMA_ENABLE": "0", "OMPI_MCA_smsc": "^cma,knem,xpmem"}


@dataclass(frozen=True)
class Mpi:
    """One MPI library at hand, with the program that was built for it."""

    name: str
    mpiexec: str
    program: str
    preload: str


@dataclass(frozen=True)
class Configuration:
    """How the ranks are started: "2.even.packed.threads3.pieces" is the most that a name can say."""

    ranks: int = 2
    on: str = "all"
    scheme: str = "chosen"
    threads: int = 1
    pieces: bool = False

    @classmethod
    def of(cls, text):
        ranks, on, scheme, *rest = text.split(".")
        threads = [int(word.removeprefix("threads")) for word in rest if word.startswith("threads")]
        return cls(int(ranks), on, scheme, *(threads or [1]), "pieces" in rest)

    def __str__(self):
        text = f"{self.ranks}.{self.on}.{self.scheme}"
        if self.threads > 1:
            text += f".threads{self.threads}"
        return text + (".pieces" if self.pieces else "")


@dataclass
class Results:
    """outcomes: of each case that wrote any, by rank; incidents: the cases that ended a run, how, with what output."""

    outcomes: dict = field(default_factory=dict)
    incidents: dict = field(default_factory=dict)
    last_words: dict = field(default_factory=dict)
    checks: int = 0
    cases: int = 0
    packed: int = 0
    launches: int = 0
    without_gapless: bool = False
    end: str = ""

    def of(self, case):
        """The outcome of a case as judge.py has it."""
        if case in self.incidents:
            return ((-1, self.incidents[case]),)
        return tuple(sorted(self.outcomes.get(case, {}).items()))

    def is_wrong(self, case):
        return case in self.incidents or any("wrong!" in text for text in self.outcomes.get(case, {}).values())


def sweep_shared_memory():
    """Removes what MPICH's jobs leave when they are killed: segments that no process maps, and that none is making. A
    run of `make test` kills some two hundred, whose segments would take a third of the memory of a small machine."""
    being_made_s = 5
    kept = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            kept.update(re.findall(r"/dev/shm/mpich_shm_\w+", maps.read_text()))
    for segment in Path("/dev/shm").glob("mpich_shm_*"):
        with contextlib.suppress(OSError):
            if str(segment) not in kept and time.time() - segment.stat().st_mtime > being_made_s:
                segment.unlink()


class Runner:
    """Starts the program of one MPI in one configuration, with gapless or without."""

    def __init__(self, mpi, configuration, seed, scratch, most_incidents=100):
        self.mpi, self.configuration, self.seed = mpi, configuration, seed
        self.scratch = Path(scratch)
        self.most_incidents = most_incidents

    def run(self, cases, with_gapless, options=()):
        results = Results()
        rest = list(cases)
        while rest:
            rest = self.run_once(rest, with_gapless, results, options)
            if len(results.incidents) > self.most_incidents:
                results.end = f"stopped after {len(results.incidents)} crashes and hangs, {len(rest)} cases not run"
                break
        return results

    def run_once(self, cases, with_gapless, results, options):
        """Adds to `results`; returns the cases that have still to be run."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        for old in self.scratch.glob("out.*"):
            old.unlink()
        (self.scratch / "cases").write_text("\n".join(map(str, cases)))
        (self.scratch / "job").write_bytes(bytes(SLOT.size * MAX_THREADS * MAX_RANKS))
        with (self.scratch / "job").open("r+b") as file, mmap.mmap(file.fileno(), 0) as job:
            status = self.wait(job, self.start(with_gapless, options))
            slots = {
                (rank, thread): read_slot(job, rank, thread)
                for rank in range(self.configuration.ranks)
                for thread in range(self.configuration.threads)
            }
        if status != 0:
            sweep_shared_memory()
        results.launches += 1
        results.checks += sum(slot["checks"] for slot in slots.values())
        results.packed += sum(slots[rank, 0]["packed"] for rank in range(self.configuration.ranks))
        self.read_outcomes(results)
        if with_gapless:
            expected = {"all": (0, 1), "even": (0,), "odd": (1,)}[self.configuration.on]
            for rank in range(self.configuration.ranks):
                started = slots[rank, 0]["state"] != STARTING
                if started and (rank % 2 in expected) != bool(slots[rank, 0]["under_gapless"]):
                    results.without_gapless = True
        return self.judge_end(cases, slots, status, results)

    def start(self, with_gapless, options):
        scratch, configuration = self.scratch, self.configuration
        environment = {**os.environ, **ENVIRONMENT, **(IN_PIECES if configuration.pieces else {})}
        if configuration.scheme != "chosen":
            environment["GAPLESS_SCHEME"] = configuration.scheme
        command = [self.mpi.mpiexec, "-n", str(configuration.ranks), self.mpi.program]
        command += ["--job", scratch / "job", "--out", scratch / "out", "--seed", str(self.seed)]
        command += ["--list", scratch / "cases", "--threads", str(configuration.threads), *options]
        if with_gapless:
            command += ["--preload", self.mpi.preload, "--on", configuration.on]
        self.log = Path(scratch / "log").open("wb")  # noqa: SIM115
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True
        )

    def wait(self, job, process):
        """The exit status, or None if it had to be ended for want of progress."""
        moved = time.monotonic()
        last = None
        while process.poll() is None:
            time.sleep(0.02)
            now = time.monotonic()
            slots = [read_slot(job, rank, thread) for rank in range(MAX_RANKS) for thread in range(MAX_THREADS)]
            progress = [slot["stage"] for slot in slots], [slot["state"] for slot in slots]
            if progress != last:
                last, moved = progress, now
            patience = SECONDS_WITHOUT_PROGRESS if any(progress[0]) else SECONDS_TO_START
            if now - moved > patience:
                self.end(process, slots)
                self.log.close()
                return None
        self.log.close()
        return process.returncode

    @staticmethod
    def end(process, slots):
        """Ends the launcher, which ends its ranks, and what it leaves of them."""
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for slot in slots:
            if slot["process"] > 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(slot["process"], signal.SIGKILL)

    def read_outcomes(self, results):
        for rank in range(self.configuration.ranks):
            for thread in range(self.configuration.threads):
                path = self.scratch / f"out.{rank}.{thread}"
                lines = path.read_text(errors="replace").splitlines() if path.exists() else []
                for line in lines:
                    case, _, judgement, text = line.split("\t")
                    results.outcomes.setdefault(int(case), {})[rank] = (
                        "wrong! " if judgement == "wrong" else ""
                    ) + text

    def judge_end(self, cases, slots, status, results):
        """Which cases are still to be run, after a run that ended with `status`."""
        threads = self.configuration.threads
        if all(slot["state"] == DONE for slot in slots.values()):
            results.cases += len(cases)
            if status != 0:
                results.end = "hung at the end" if status is None else f"exit status {status} at the end"
            return []
        if not any(slot["stage"] for slot in slots.values()):
            results.end = "did not start:\n" + self.tail()
            return []
        culprits = {}
        for slot in slots.values():
            if slot["state"] == SIGNAL:
                culprits[slot["case"]] = f"signal {slot['detail']}"
            elif slot["state"] == HEAP_DAMAGED:
                culprits.setdefault(slot["case"], None)
            elif slot["state"] == LEFT_EARLY:
                culprits.setdefault(slot["case"], "ended by the library")
        rest = []
        for thread in range(threads):
            own = cases[thread::threads]
            slots_of_thread = [slots[rank, thread] for rank in range(self.configuration.ranks)]
            unfinished = [
                own.index(slot["case"]) for slot in slots_of_thread if slot["case"] in own and slot["state"] != DONE
            ]
            # What a rank has not even begun when another is done with everything stands no more in its slot.
            if not unfinished:
                results.cases += len(own)
                continue
            at = min(unfinished)
            for slot in slots_of_thread:
                if slot["case"] in culprits and slot["case"] in own:
                    at = own.index(slot["case"])
            if not culprits and status is None:
                culprits_here = {own[at]: "hang"}
            elif not culprits:
                culprits_here = {own[at]: f"exit status {status}"}
            else:
                culprits_here = {case: how for case, how in culprits.items() if case in own}
            for case, how in culprits_here.items():
                results.last_words[case] = self.tail()
                if how is not None:
                    results.incidents[case] = how
            rest += own[at + 1 :] if own[at] in culprits_here else own[at:]
            results.cases += at + (own[at] in culprits_here)
        return sorted(rest)

    def tail(self, lines=24):
        return "\n".join((self.scratch / "log").read_text(errors="replace").splitlines()[-lines:])


def read_slot(job, rank, thread):
    return dict(zip(FIELDS, SLOT.unpack_from(job, SLOT.size * (rank * MAX_THREADS + thread)), strict=True))


def families(mpi, seed, cases):
    """The family of each case, as the program tells it without MPI."""
    command = [mpi.program, "--seed", str(seed), "--cases", str(cases.start), str(cases.stop), "--print-families"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {int(number): family for number, family in (line.split() for line in lines)}
