"""Where gapless is slower than the MPI library alone, and how far messages of GPU memory are from their bound."""

import textwrap

from gapless.documents.messages import by_library_and_machine
from gapless.documents.results import machine_name
from gapless.documents.tables import NOT_MEASURED, gains_of, library_name, markdown, rows_of

LEAST_GAIN = 0.97  # as the targets of messages ask
AWARE, ALONE, READY = "GPU-aware Open MPI", "the library alone", "ready"
BY_REQUESTS, TO_NEIGHBORS = "Isend and Irecv", "Neighbor_alltoallw"
BY_HAND, THROUGH_HOST = "by hand, Alltoallv", "by hand through host memory"
CONTIGUOUS = 0  # as a length of blocks
LONG = 16 << 20


def lost_messages_table(results: list[dict]) -> str:
    """Every message in host memory between processes of a node that is slower than by the library alone."""
    lines = []
    for (library, _), found in by_library_and_machine(rows_of(results, "host_messages")).items():
        lost: dict[str, list[str]] = {}
        for row, gain in zip((row for _, row in found), gains_of(row for _, row in found), strict=True):
            if gain < LEAST_GAIN:
                *kind, which = row["case"]["message"].split(", ", 2)
                lost.setdefault(", ".join(kind), []).append(f"{below(gain)} ({which})")
        said = "; ".join(f"{kind}: {', '.join(those)}" for kind, those in lost.items())
        lines.append([machine_name(found[0][0]), library_name(library), said or "none"])
    heads = ["machine", "library", f"below {LEAST_GAIN} times the speed of the library alone"]
    return markdown(heads, lines) if lines else NOT_MEASURED


def below(gain: float) -> str:
    """Two digits, or three where two would read as the limit."""
    text = f"{gain:.2f}"
    return text if text != f"{LEAST_GAIN:.2f}" else f"{gain:.3f}"


def spread(ratios: list[float], digits: int = 2) -> str:
    """The least and the most."""
    least, most = f"{min(ratios):.{digits}f}", f"{max(ratios):.{digits}f}"
    return least if least == most else f"{least} to {most}"


def gpu_sentences(results: list[dict]) -> str:
    """How near messages and halos of GPU memory are to their bounds."""
    return textwrap.fill(f"{gpu_messages_sentences(results)} {gpu_halos_sentences(results)}", 140)


def gpu_messages_sentences(results: list[dict]) -> str:
    """Messages between two GPUs over a contiguous one of the library that reads GPU memory, alone."""
    rows = [row for _, row in rows_of(results, "messages") if row["case"]["memory"] == "gpu"]
    alone = {row["case"]["bytes"]: row["peers"][ALONE] for row in rows if is_contiguous_by_aware_library(row)}
    beside = [(row, alone[row["case"]["bytes"]]) for row in rows if row["case"]["bytes"] in alone]
    long = [(row["case"]["block"], row["value"] / of) for row, of in beside if row["case"]["bytes"] >= LONG]
    short = [(row["value"], of) for row, of in beside if row["case"]["bytes"] < LONG and is_long(row["case"]["block"])]
    ready = [row["peers"][READY] / of for row, of in beside if READY in row["peers"]]
    if not long or not short or not ready:
        return NOT_MEASURED
    by_block = {
        "contiguous messages and blocks of 128 bytes and more": is_long,
        "blocks of 64 bytes": lambda block: block == 64,
        "of 32 bytes": lambda block: block == 32,
        "of 8 and 16 bytes": lambda block: block in (8, 16),
    }
    said = []
    for name, accepts in by_block.items():
        if ratios := [ratio for block, ratio in long if accepts(block)]:
            said.append(f"{name} {spread(ratios)}")
    return (
        f"As multiples of a contiguous message by the GPU-aware library, from 16 MiB on: {', '.join(said)}. Shorter "
        f"contiguous messages, and shorter ones in blocks of 128 bytes and more: "
        f"{spread([value / of for value, of in short])}, {max(value - of for value, of in short):.1f} us more at most. "
        f"With `GAPLESS_RESIDENT=ready`, up to 16 KiB: {spread(ready)}."
    )


def is_contiguous_by_aware_library(row: dict) -> bool:
    return row["case"]["library"] == AWARE and row["case"]["block"] == CONTIGUOUS and ALONE in row["peers"]


def is_long(block: int) -> bool:
    return block == CONTIGUOUS or block >= 128


def gpu_halos_sentences(results: list[dict]) -> str:
    """Halos of GPU memory over what a program does by hand."""
    rows = [row for _, row in rows_of(results, "halo") if BY_HAND in row["peers"]]
    one = [row["value"] / row["peers"][BY_HAND] for row in rows if row["case"]["form"] == TO_NEIGHBORS]
    small = [row for row in rows if row["case"]["form"] == BY_REQUESTS and row["case"]["points"] <= 128]
    if not one or not small:
        return NOT_MEASURED
    by_hand, through_host = (
        [row["value"] / row["peers"][beside] for row in small] for beside in (BY_HAND, THROUGH_HOST)
    )
    return (
        f"`MPI_Neighbor_alltoallw` takes {spread(one, 1)} times as long as an `MPI_Alltoallv` by hand. *{BY_REQUESTS}* "
        f"of 64³ and 128³ take {spread(by_hand, 1)} times as long as that `MPI_Alltoallv`, and "
        f"{spread(through_host, 1)} times as long as 26 messages by hand through host memory."
    )
