"""What gapless costs where it does not help: a table, and the same in a few words."""

import statistics
import textwrap
from collections.abc import Callable

from gapless.documents.results import machine_name
from gapless.documents.tables import LIBRARIES, NODE_MESSAGES, NOT_MEASURED, gains_of, markdown, rows_of

# Processes, as the benchmark calls them.
WITHOUT_GPU, BESIDE_GPU, WITH_GPU = "uses no GPU", "uses no GPU, where there is one", "uses a GPU"
OWN_PAGES = "pages of its own"

Accepts = Callable[[dict], bool]


def may_be_header(case: dict) -> bool:
    return "1 KiB" in case["call"]


def passes(case: dict) -> bool:
    return not may_be_header(case)


def passes_own_pages(case: dict) -> bool:
    return passes(case) and case["memory"] == OWN_PAGES


def passes_other_memory(case: dict) -> bool:
    return passes(case) and case["memory"] != OWN_PAGES


COSTS = (
    ("a call, no GPU in the machine", WITHOUT_GPU, passes),
    ("a receive of 1 KiB, no GPU in the machine", WITHOUT_GPU, may_be_header),
    ("a call, a GPU in the machine and none in use", BESIDE_GPU, passes),
    ("a receive of 1 KiB, a GPU in the machine and none in use", BESIDE_GPU, may_be_header),
    ("a call, a GPU in use, buffer on the stack, on the heap or in program data", WITH_GPU, passes_other_memory),
    ("a call, a GPU in use, buffer in pages of its own (large arrays)", WITH_GPU, passes_own_pages),
    ("a receive of 1 KiB, a GPU in use", WITH_GPU, may_be_header),
)


def costs_of_calls(results: list[dict], process: str, accepts: Accepts, libraries=tuple(LIBRARIES)) -> list[float]:
    """How many nanoseconds calls of such a process take more than the library's own."""
    cases = [(row["case"], row["value"]) for _, row in rows_of(results, "mpi_overhead")]
    mine = [(case, value) for case, value in cases if case.get("process") == process and case["library"] in libraries]
    return [value for case, value in mine if accepts(case)]


def costs_of_types(results: list[dict], libraries=tuple(LIBRARIES)) -> list[float]:
    """Times that datatypes take to make and free, over the library's own."""
    rows = [row for _, row in rows_of(results, "mpi_overhead") if "create, commit, free" in row["case"]]
    return [row["value"] / row["bound"] for row in rows if row["case"]["library"] in libraries]


def nanoseconds(values: list[float]) -> str:
    """The least and the most."""
    if not values:
        return ""
    least, most = (f"{value:.0f}" if value >= 10 else f"{value:.1f}" for value in (min(values), max(values)))
    return f"{least} ns" if least == most else f"{least} to {most} ns"


def times(ratios: list[float]) -> str:
    return f"{min(ratios):.2f} to {max(ratios):.2f} times" if ratios else ""


def costs_table(results: list[dict]) -> str:
    found = rows_of(results, "mpi_overhead")
    if not found:
        return NOT_MEASURED
    rows = [
        [name, *(nanoseconds(costs_of_calls(results, process, accepts, [library])) for library in LIBRARIES)]
        for name, process, accepts in COSTS
        if costs_of_calls(results, process, accepts)
    ]
    rows.append(["a datatype made and freed", *(times(costs_of_types(results, [library])) for library in LIBRARIES)])
    origins = dict.fromkeys(f"{machine_name(result)}, commit {result['commit']}" for result, _ in found)
    heads = ["", *LIBRARIES.values()]
    return f"More than by the library alone ({'; '.join(origins)}):\n\n" + markdown(heads, rows)


def more_at_start(results: list[dict], moment: str, unit: str) -> str:
    """By how much a process has used more at that moment, the least and the most."""
    more = [
        max(row["value"] - row["bound"], 0)
        for _, row in rows_of(results, "starts")
        if (row["case"]["moment"], row["unit"]) == (moment, unit)
    ]
    return f"{min(more):.1f} to {max(more):.1f} {unit}"


def costs_sentences(results: list[dict]) -> str:
    """What is lost by calls, by datatypes, and by messages that gapless leaves alone."""
    messages = [row for _, row in rows_of(results, "host_messages")]
    if not costs_of_calls(results, WITHOUT_GPU, passes) or not costs_of_types(results) or not messages:
        return NOT_MEASURED
    short, header = (nanoseconds(costs_of_calls(results, WITHOUT_GPU, accepts)) for accepts in (passes, may_be_header))
    sentences = [
        f"On a machine without a GPU a call that gapless lets through takes {short} more, and a receive of 1 KiB "
        f"{header} more."
    ]
    if beside := costs_of_calls(results, BESIDE_GPU, passes):
        header = costs_of_calls(results, BESIDE_GPU, may_be_header)
        sentences.append(
            f"Where the machine has a GPU that the process does not use, a call takes {nanoseconds(beside)} more, and "
            f"that receive {nanoseconds(header)}."
        )
    if elsewhere := costs_of_calls(results, WITH_GPU, passes_other_memory):
        most = max(costs_of_calls(results, WITH_GPU, passes_own_pages), default=0)
        header = max(costs_of_calls(results, WITH_GPU, may_be_header), default=0)
        sentences.append(
            f"In a process that uses a GPU a call takes {nanoseconds(elsewhere)} more, and up to {most:.0f} ns where "
            f"its buffer lies in pages of its own, as large arrays do; that receive takes up to {header:.0f} ns more."
        )
    sentences.append(f"To make and free a datatype takes {times(costs_of_types(results))} as long.")
    if starts := [row["case"]["ranks"] for _, row in rows_of(results, "starts")]:
        init, memory = more_at_start(results, "MPI_Init", "ms"), more_at_start(results, "first messages", "MiB")
        sentences.append(
            f"A process takes {init} more of processor time to the end of `MPI_Init`, and {memory} more of memory once "
            f"it has had a first message from each process of a job of up to {max(starts)}."
        )
    shares = []
    for kind, beginnings in NODE_MESSAGES.items():
        gains = gains_of(row for row in messages if row["case"]["message"].startswith(beginnings))
        if kind.startswith("contiguous, ") and gains:
            mean, when = statistics.geometric_mean(gains), kind.removeprefix("contiguous, ")
            shares.append(f"{when} {mean:.2f} ({min(gains):.2f} at worst)")
    if shares:
        sentences.append(f"Contiguous messages in a node reach, of the library's speed, {' and '.join(shares)}.")
    return textwrap.fill(" ".join(sentences), 120)
