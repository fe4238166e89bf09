"""The gapless command: what it understands, and how mistakes are shown."""

import argparse
import os
import sys

from gapless import __version__
from gapless.calibration import calibrate
from gapless.command import bench, explain, info, launch, report, variables
from gapless.errors import UserError


class Parser(argparse.ArgumentParser):
    advice = ""
    """Follows what is said of unknown arguments, if they are not options alone."""

    def parse_known_args(self, args=None, namespace=None):
        """Leaves nothing unknown for the parser of `gapless`, so that the help of the right command is named."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            advice = "" if all(word.startswith("-") for word in unknown) else self.advice
            self.error(f"unrecognized arguments: {' '.join(unknown)}{advice}")
        return known, unknown

    def error(self, message):
        raise UserError(f"{message} (see {self.prog} --help)", 2)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 on is needed, not '{text}'")
    return int(text)


def add_launching(command) -> None:
    for name, text, through in (
        ("run", "run a program, or an MPI launcher with its program, with gapless", True),
        ("exec", "become a program with gapless; for use after a launcher: mpirun -n 4 gapless exec ./app", False),
    ):
        sub = command(name, launch.run, text)
        sub.set_defaults(through_launcher=through)
        sub.add_argument("--statistics", action="store_true", help="print per rank what was chosen, on stderr")
        verbose = "say on stderr which MPI library is in use" + (", and what is promised of the job" if through else "")
        sub.add_argument("--verbose", action="store_true", help=verbose)
        # argparse shows a remainder as three dots.
        sub.usage = f"gapless {name} [-h] [--statistics] [--verbose] CMD..."
        what = "a program or launcher, and its own arguments" if through else "a program, and its own arguments"
        sub.add_argument("command", nargs=argparse.REMAINDER, metavar="CMD...", help=what)


def add_questions(command) -> None:
    sub = command("info", info.info, "say which MPI library and GPU gapless would serve, and what is missing")
    sub.advice = "; the program is named without its launcher and arguments: gapless info ./app"
    sub.add_argument("--json", action="store_true", help="the same as JSON")
    sub.add_argument(
        "program",
        nargs="?",
        metavar="PROGRAM",
        help="an MPI program without its launcher and arguments; without it, the MPIs of this environment",
    )

    sub = command("variables", variables.variables, "say what each environment variable of gapless does")
    sub.add_argument("name", nargs="?", metavar="NAME", help="say it of this one, for example GAPLESS_SCHEME")

    sub = command("explain", explain.explain, "say what a datatype is, how it is moved and what that costs")
    sub.formatter_class, sub.epilog = argparse.RawDescriptionHelpFormatter, f"{explain.GRAMMAR}\n{explain.LEGEND}"
    sub.add_argument("type", metavar="TYPE", help='for example "vector(1024, 1, 4, int)"')
    sub.add_argument("--count", type=positive, default=1, help="how many of it one call moves")
    sub.add_argument("--json", action="store_true", help="the same as JSON")


def add_measuring(command) -> None:
    sub = command("calibrate", calibrate.calibrate, "measure what messages take here, and keep it for later runs")
    sub.add_argument("--mpirun", default="mpirun -n 2", metavar="'CMD...'", help="your launcher, for 2 ranks or more")
    sub.add_argument("--output", metavar="FILE", help="the profile; by default where programs look for it")
    sub.add_argument("--library", metavar="FILE", help="the libmpi to measure; by default the launcher's own")
    sub.add_argument("--seconds", type=positive, default=150, help="how long to measure, about")

    sub = command("report", report.report, "say which way a run's messages went, what was predicted and what was real")
    sub.formatter_class, sub.epilog = argparse.RawDescriptionHelpFormatter, report.LEGEND
    sub.add_argument("path", metavar="PATH", help="what GAPLESS_REPORT was in the run, or the file of one rank")
    sub.add_argument("--html", metavar="FILE", help="write a page with plots instead of text")

    sub = command("bench", bench.bench, "run a benchmark of the checkout, or check the committed results")
    sub.usage = "gapless bench [-h] [--check] [--list] [NAME [OPTION...]]"
    sub.add_argument(
        "--check", action="store_true", help="print the targets that committed results miss; status 1 if there are any"
    )
    sub.add_argument("--list", action="store_true", help="say which benchmarks there are, and what each measures")
    sub.add_argument("name", nargs="?", metavar="NAME", help="a benchmark, or all that need no options")
    sub.add_argument(
        "options",
        nargs=argparse.REMAINDER,
        metavar="OPTION...",
        help="what the benchmark itself understands; gapless bench NAME --help says it",
    )


def parser() -> Parser:
    top = Parser(prog="gapless", description="Noncontiguous data at contiguous speed, on any MPI.")
    top.add_argument("--version", action="version", version=f"gapless {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, function, text: str) -> Parser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        return sub

    add_launching(command)
    add_questions(command)
    add_measuring(command)
    return top


def run(words: list[str]) -> int:
    arguments = parser().parse_args(words)
    if arguments.function is launch.run:
        if arguments.command[:1] == ["--"]:
            del arguments.command[0]
        if not arguments.command:
            name = "run" if arguments.through_launcher else "exec"
            raise UserError(f"there is no program to run (see gapless {name} --help)", 2)
    status = arguments.function(arguments)
    sys.stdout.flush()  # here, where a failure is shown
    return status


def main(words: list[str] | None = None) -> int:
    try:
        return run(sys.argv[1:] if words is None else words)
    except UserError as error:
        print(f"gapless: {error}", file=sys.stderr)
        return error.status
    except OSError as error:
        # Python would write at its end what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
            return 0
        print(f"gapless: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
