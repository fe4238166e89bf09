"""Random point-to-point and pack calls under gapless, against an oracle of their own and against the library.

    run.py --build build/default                       as in `make test`, for every MPI that was built for
    run.py --build build/default --minutes 60          the long run
    run.py --build build/default --mpi mpich --seed 1 --configuration 2.all.packed --case 117    one case

Each failing case is run again natively with the same seed. Exit status 1 if a fault of gapless was found.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import judge
from launch import Configuration, Mpi, Runner, families

CONFIGURATIONS = (
    "2.all.packed",
    "1.all.packed",
    "2.all.chosen",
    "2.all.slots",
    "2.even.packed",
    "2.odd.packed",
    "4.all.packed",
    "2.all.packed.pieces",
    "3.all.chosen",
    "2.all.packed.threads3",
    "1.all.chosen",
    "4.odd.packed",
    "2.even.chosen.pieces",
    "2.even.packed.threads2.pieces",
)
FAMILIES = ("message", "exchange", "truncation", "partial", "packing", "misuse")
REPEATS = 3
TIMES = 20
"""How often the library runs a case before damage that gapless does there is no fault of the library's."""
MOST_CONFIRMED = 25
MOST_SHOWN = 2


class Finding:
    """A case whose outcome under gapless is not as good as the library's."""

    def __init__(self, tester, case, family, gapless, native, last_words):
        self.tester, self.case, self.family = tester, case, family
        self.gapless, self.native = gapless, native
        self.last_words = last_words
        self.verdict, self.plan = "", ""

    @property
    def kind(self):
        return judge.kind_of(
            self.family, min(self.gapless, key=lambda outcome: not judge.damages(outcome)), self.native
        )

    def __str__(self):
        tester = self.tester
        last_words = "".join(f"    {line}\n" for line in self.last_words.splitlines())
        return (
            f"{self.verdict}: {tester.mpi.name}, {tester.configuration}, {self.kind}\n"
            f"  {self.plan}\n"
            f"{text_of('gapless', self.gapless)}{text_of('native', self.native)}{last_words}"
            f"  again:   {tester.command(self.case)}"
        )


def text_of(who, outcomes):
    lines = ""
    for outcome in sorted(outcomes):
        text = " | ".join(f"{rank}: {text}" if rank >= 0 else text for rank, text in outcome)
        lines += f"  {who + ':':9}{text or 'right'}\n"
    return lines


class Tester:
    """One MPI in one configuration."""

    def __init__(self, mpi, configuration, arguments, scratch):
        self.mpi, self.configuration, self.arguments = mpi, configuration, arguments
        self.runner = Runner(mpi, configuration, arguments.seed, Path(scratch) / f"{mpi.name}.{configuration}")
        self.checks = self.packed = self.launches = self.of_library = 0
        self.complaints = []

    def command(self, case):
        return (
            f"python3 tests/mpi/differential/driver/run.py --build {self.arguments.build} --mpi {self.mpi.name} "
            f"--seed {self.arguments.seed} --configuration {self.configuration} --case {case}"
        )

    def test(self, cases):
        """Runs the cases; returns the findings."""
        family = {
            k: f for k, f in families(self.mpi, self.arguments.seed, cases).items() if f in self.arguments.families
        }
        # The library decides what comes of erroneous programs. Those that end it are not worth a run.
        erroneous = [case for case in family if family[case] in judge.ERRONEOUS]
        native = self.run(erroneous, False)
        sequence = [case for case in family if case not in native.incidents]
        gapless = self.run(sequence, True)
        self.of_library += len(native.incidents)
        self.checks += gapless.checks
        self.packed += gapless.packed
        self.look_at_end(gapless)
        wrong = [case for case in family if family[case] not in judge.ERRONEOUS and gapless.is_wrong(case)]
        native_of_wrong = self.run(wrong, False)
        findings = []
        for case in family:
            if family[case] in judge.ERRONEOUS:
                if case in native.incidents:
                    continue
                before, after = native.of(case), gapless.of(case)
                if not before or not after:  # one of the runs was given up
                    continue
            else:
                before, after = native_of_wrong.of(case), gapless.of(case)
            finding = Finding(self, case, family[case], {after}, {before}, gapless.last_words.get(case, ""))
            if not judge.is_as_good(family[case], after, {before}):
                findings.append(finding)
            elif gapless.is_wrong(case):
                self.note_library(finding)
        return self.confirm(findings, sequence)

    def note_library(self, finding):
        """A fault of the library's own, which gapless shows, too."""
        finding.verdict = "library"
        self.of_library += 1
        if self.arguments.show_library:
            finding.plan = self.plan_of(finding.case)
            print(finding)

    def run(self, cases, with_gapless, options=()):
        results = self.runner.run(cases, with_gapless, options)
        self.launches += results.launches
        return results

    def look_at_end(self, results):
        if results.end:
            self.complaints.append(f"{self.mpi.name}, {self.configuration}: {results.end}")
        if results.without_gapless:
            self.complaints.append(f"{self.mpi.name}, {self.configuration}: gapless is not where it should be")

    def confirm(self, findings, sequence):
        """Runs them again, alone, with gapless and without, and says whose each is. What does not come again alone is
        run behind the cases that were before it in `sequence`: it may come of what they leave."""
        findings.sort(key=lambda finding: not any(map(judge.damages, finding.gapless)))
        confirmed = findings[:MOST_CONFIRMED]
        cases = [finding.case for finding in confirmed]
        again = {True: {case: set() for case in cases}, False: {case: set() for case in cases}}
        # A thread that ends the run may do so in the message of another's case.
        groups = [[case] for case in cases] if self.configuration.threads > 1 else [cases]
        for with_gapless in (True, False):
            for group in groups * REPEATS:
                results = self.run(group, with_gapless)
                for case in group:
                    again[with_gapless][case].add(results.of(case))
        for finding in confirmed:
            finding.native |= again[False][finding.case]
            finding.verdict = self.verdict_on(finding, again[True][finding.case])
            finding.gapless |= again[True][finding.case]
            # An erroneous program may end by what others have left in the library.
            if finding.verdict == "once" and finding.family not in judge.ERRONEOUS:
                self.confirm_behind_others(finding, sequence[: sequence.index(finding.case) + 1])
            finding.plan = self.plan_of(finding.case)
        for finding in findings[MOST_CONFIRMED:]:
            finding.verdict = "not confirmed"
        for finding in findings:
            if finding.verdict == "library":
                self.note_library(finding)
        return [finding for finding in findings if finding.verdict != "library"]

    def confirm_behind_others(self, finding, sequence):
        finding.native.add(self.run(sequence, False).of(finding.case))
        again = {self.run(sequence, True).of(finding.case) for _ in range(REPEATS)}
        finding.verdict = self.verdict_on(finding, again)
        if finding.verdict == "gapless":
            finding.last_words += f"comes behind the cases from {sequence[0]} on, and not alone"

    def verdict_on(self, finding, again):
        def is_bad(outcome):
            return not judge.is_as_good(finding.family, outcome, finding.native)

        if not any(map(is_bad, finding.gapless)):
            return "library"
        if not any(map(is_bad, again)):
            return "once"
        # Of an erroneous program no more can be asked than the library does with contiguous messages, if only at times.
        is_erroneous = finding.family in judge.ERRONEOUS
        only_damages = all(map(judge.damages, filter(is_bad, again)))
        if not is_erroneous or not only_damages:
            return "gapless"
        if self.library_damages(finding.case, []):
            return "library"
        ends = ("out", "in", "both")
        excused = any(self.library_damages(finding.case, ["--contiguous", which]) for which in ends)
        return "contiguous" if excused else "gapless"

    def library_damages(self, case, options):
        """Does it so natively? With --contiguous either end of the message, or both, are contiguous, as gapless makes
        them."""
        at_once = 5
        runs = (self.run([case] * at_once, False, options) for _ in range(TIMES // at_once))
        return any(judge.damages(results.of(case)) for results in runs)

    def plan_of(self, case):
        self.run([case], False, ["--all"])
        text = (self.runner.scratch / "log").read_text(errors="replace")
        return text[text.index("case ") :].strip() if "case " in text else "(no plan)"


def read_mpis(build, wanted):
    table = json.loads((Path(build) / "tests/mpi/differential/mpis.json").read_text())
    mpis = [Mpi(**row) for row in table]
    return [mpi for mpi in mpis if not wanted or mpi.name in wanted]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/default", help="the build directory")
    parser.add_argument("--mpi", action="append", help="mpich, abi or openmpi; may be given several times")
    parser.add_argument("--seed", type=int, default=20100401)
    parser.add_argument("--checks", type=int, default=18000, help="how many for each MPI")
    parser.add_argument("--minutes", type=float, help="run for so long instead, with ever new cases")
    parser.add_argument("--configuration", action="append", help=f"default: {' '.join(CONFIGURATIONS)}")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--case", type=int, action="append", help="run this case alone, with gapless and without")
    parser.add_argument("--chunk", type=int, default=1000, help="cases a run of a configuration")
    parser.add_argument("--show-library", action="store_true", help="print the library's own faults, too")
    parser.add_argument("--scratch", help="where to keep what the runs write")
    arguments = parser.parse_args()
    arguments.families = arguments.families.split(",")
    return arguments


def show_case(tester, case):
    print(tester.plan_of(case))
    for with_gapless in (False, True):
        outcomes = [tester.run([case], with_gapless, ["--all"]).of(case) for _ in range(REPEATS)]
        for outcome in sorted(set(outcomes)):
            print(
                f"{outcomes.count(outcome)} of {REPEATS}:{text_of('gapless' if with_gapless else 'native', {outcome})}"
            )
        if any(map(judge.ended, outcomes)):
            print(tester.runner.tail(30))


def chunks(arguments, mpis, scratch):
    """Testers, each with its next cases, until there are checks enough or the time is over."""
    names = arguments.configuration or CONFIGURATIONS
    testers = {(mpi, name): Tester(mpi, Configuration.of(name), arguments, scratch) for mpi in mpis for name in names}
    until = time.monotonic() + 60 * (arguments.minutes or 0)
    first = 0
    while True:
        for name in names:
            for mpi in mpis:
                done = sum(testers[mpi, other].checks for other in names)
                if time.monotonic() > until if arguments.minutes else done >= arguments.checks:
                    continue
                yield testers[mpi, name], range(first, first + arguments.chunk)
            first += arguments.chunk
        if arguments.minutes and time.monotonic() > until:
            return
        if not arguments.minutes and all(
            sum(testers[mpi, name].checks for name in names) >= arguments.checks for mpi in mpis
        ):
            return


def main():
    arguments = parse()
    mpis = read_mpis(arguments.build, arguments.mpi)
    scratch = arguments.scratch or tempfile.mkdtemp(prefix="gapless-differential-")
    if arguments.case:
        for mpi in mpis:
            for name in arguments.configuration or CONFIGURATIONS[:1]:
                for case in arguments.case:
                    show_case(Tester(mpi, Configuration.of(name), arguments, scratch), case)
        return 0
    print(f"seed {arguments.seed}", flush=True)
    testers, findings, shown = {}, [], {}
    for tester, cases in chunks(arguments, mpis, scratch):
        testers[tester.mpi.name, str(tester.configuration)] = tester
        started = time.monotonic()
        found = tester.test(cases)
        print(
            f"{tester.mpi.name:8} {str(tester.configuration):32} cases {cases.start}-{cases.stop}: "
            f"{tester.checks} checks so far, {len(found)} findings, {tester.launches} runs, "
            f"{time.monotonic() - started:.1f} s",
            flush=True,
        )
        show(found, shown)
        findings += found
    if not arguments.scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    return report(testers.values(), findings, shown)


def show(findings, shown):
    """Of each kind the first few; `shown` counts them."""
    for finding in findings:
        kind = finding.tester.mpi.name, finding.verdict, finding.kind
        shown[kind] = shown.get(kind, 0) + 1
        if finding.verdict != "not confirmed" and shown[kind] <= MOST_SHOWN:
            print(finding, flush=True)


def report(testers, findings, shown):
    checks = sum(tester.checks for tester in testers)
    packed = sum(tester.packed for tester in testers)
    complaints = [text for tester in testers for text in tester.complaints]
    complaints += [f"{t.mpi.name}, {t.configuration}: nothing was packed" for t in testers if t.packed == 0]
    counts = {v: sum(f.verdict == v for f in findings) for v in ("gapless", "not confirmed", "contiguous", "once")}
    print(
        f"{checks} checks, {packed} messages packed by gapless, {sum(t.launches for t in testers)} runs. "
        f"Faults of gapless: {counts['gapless']} and {counts['not confirmed']} not run again. "
        f"Where the library does the same with contiguous messages: {counts['contiguous']}. "
        f"Seen once: {counts['once']}. Of the library itself: {sum(t.of_library for t in testers)}."
    )
    for text in complaints:
        print(text)
    for (mpi, verdict, kind), count in sorted(shown.items()):
        print(f"{count:6} {mpi}, {verdict}: {kind}")
    return 1 if counts["gapless"] or counts["not confirmed"] or complaints or checks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
