"""Which words of a launcher's command line are its options. From a program on all words are the program's own."""

import re
from collections.abc import Callable, Iterator

# srun's options whose value is never the next word: they have none, or may have one in their own word (I, K, k).
SRUN_LETTERS, SRUN_LETTERS_WITH_VALUE = "EHOQVXZhlsuv", "IKk"
SRUN_WORDS = (
    "async bcast compress consolidate-segments contiguous debugger-test disable-status exact exclusive "
    "external-launcher help hold immediate interactive kill-on-bad-exit label multi-prog nice no-allocate no-kill "
    "oom-kill-step overcommit overlap oversubscribe parsable preserve-env propagate pty quiet quit-on-interrupt "
    "reboot resv-ports send-libs spread-job spread-segments stepmgr test-only unbuffered usage use-min-nodes verbose "
    "version wait-for-children whole x11"
)

# Open MPI's options without a value, of 4 and 5, and those with a name and a value. All others have one value.
OPENMPI_WORDS = (
    "V allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous d daemonize debug debug-daemons "
    "debug-daemons-file debug-devel disable-recovery display-allocation display-devel-allocation display-devel-map "
    "display-diffable-map display-map display-topo do-not-launch do-not-resolve enable-instant-on-support "
    "enable-recovery fwd-environment fwd-mpirun-port get-stack-traces index-argv-by-rank leave-session-attached "
    "merge-stderr-to-stdout no-ready-msg nolocal nooversubscribe noprefix novm output-proctable oversubscribe pernode "
    "preload-binary q quiet report-bindings report-child-jobs-separately report-state-on-timeout s "
    "set-cwd-to-session-dir show-progress stop-on-exec system-server tag-output timestamp-output tv use-hwthread-cpus "
    "use-regexp v verbose version xml"
)
OPENMPI_PAIRS = "gmca gomca gpmixmca gprtemca mca omca pmixmca prtemca"

# Hydra's options without a value, MPICH's and Intel MPI's. All others but -env and -genv have one value.
HYDRA_WORDS = (
    "V aps disable-auto-cleanup disable-hostname-propagation disable-x enable-x envall envnone gdb genvall genvnone "
    "hybrid-hosts info l mps nolocal pmi-port prepend-rank prepend-timestamp print-all-exitcodes print-rank-map "
    "profile prot rr silent-abort skip-launch-node v verbose version"
)


def options(words: list[str], values: Callable[[list[str]], int]) -> Iterator[int]:
    """Where options stand; `values` tells of words that begin with an option how many of the next are its values."""
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] != "--":
        yield i
        i += 1 + values(words[i:])


def srun_values(words: list[str]) -> int:
    option = words[0]
    if option.startswith("--"):
        return int("=" not in option and option.removeprefix("--") not in SRUN_WORDS.split())
    return int(bool(re.fullmatch(f"-[{SRUN_LETTERS}]*[^{SRUN_LETTERS}{SRUN_LETTERS_WITH_VALUE}]", option)))


def openmpi_values(words: list[str]) -> int:
    name = words[0].lstrip("-")
    if "=" in name or name in OPENMPI_WORDS.split():
        return 0
    return 2 if name in OPENMPI_PAIRS.split() else 1


def hydra_values(words: list[str]) -> int:
    name = words[0].lstrip("-")
    if "=" in name or name in HYDRA_WORDS.split():
        return 0
    return 2 if name in ("env", "genv") and "=" not in "".join(words[1:2]) else 1
