"""The tables of the documentation that tell how long messages take, and what endpoints reach."""

from gapless.documents.results import machine_name
from gapless.documents.tables import NOT_MEASURED, markdown, rows_of


def size_text(number: float) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= unit and number % unit == 0:
            return f"{number / unit:.0f} {name}"
    return f"{number:.0f} B"


def microseconds(value: float | None) -> str:
    """With as many digits as are worth a look."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table_beside_peers(found: list[tuple[dict, dict]], heads: list[str], cells_of) -> str:
    """One line a row: the cells that name it, gapless's time, and that of each other way."""
    peers = list(dict.fromkeys(peer for _, row in found for peer in row["peers"]))
    lines = [
        [*cells_of(row["case"]), f"**{microseconds(row['value'])}**"]
        + [microseconds(row["peers"].get(peer)) for peer in peers]
        for _, row in found
    ]
    return markdown([*heads, "gapless", *peers], lines)


def gpu_messages_table(results: list[dict]) -> str:
    """Messages between GPU buffers: a table for each MPI library."""
    all_of = [pair for pair in rows_of(results, "messages") if pair[1]["case"]["memory"] == "gpu"]
    tables = []
    for library in dict.fromkeys(row["case"]["library"] for _, row in all_of):
        found = [pair for pair in all_of if pair[1]["case"]["library"] == library]
        machine = f"{machine_name(found[0][0])}, commit {found[0][0]['commit']}"
        cells = table_beside_peers(
            found,
            ["bytes", "blocks of"],
            lambda case: [size_text(case["bytes"]), size_text(case["block"]) if case["block"] else "contiguous"],
        )
        tables.append(f"{library} ({machine}), microseconds:\n\n{cells}")
    return "\n\n".join(tables) or NOT_MEASURED


def gpu_halos_table(results: list[dict]) -> str:
    """Halo exchanges of GPU memory, all libraries in one table."""
    found = rows_of(results, "halo")
    if not found:
        return NOT_MEASURED
    cells = table_beside_peers(
        found,
        ["library", "form", "box"],
        lambda case: [case["library"], case["form"], f"{case['points']}³, {case['width']} wide"],
    )
    return f"{machine_name(found[0][0])}, commit {found[0][0]['commit']}, microseconds:\n\n{cells}"


def host_messages_table(results: list[dict]) -> str:
    """Messages in host memory between two processes of a node: a table for each MPI library."""
    all_of = rows_of(results, "host_messages")
    tables = []
    for library in dict.fromkeys(row["case"]["library"] for _, row in all_of):
        found = [pair for pair in all_of if pair[1]["case"]["library"] == library]
        machine = f"{machine_name(found[0][0])}, commit {found[0][0]['commit']}"
        cells = table_beside_peers(found, ["message"], lambda case: [case["message"]])
        tables.append(f"{library} ({machine}), microseconds:\n\n{cells}")
    return "\n\n".join(tables) or NOT_MEASURED


RDMA_COLUMNS = (1, 16, 128, 512, 2048)
RDMA_SCHEMES = ("pipelined", "gather-write", "scatter-read", "multi-write", "packed", "chosen", "contiguous")


def rdma_table(results: list[dict]) -> str:
    """Wu et al.'s columns by each scheme, with the operations and copies of a message, and the exchange of a struct."""
    found = rows_of(results, "rdma")
    tables = []
    for fabric in dict.fromkeys(row["case"]["fabric"] for _, row in found):
        mine = [row for _, row in found if row["case"]["fabric"] == fabric]
        where = f"{fabric}, {machine_name(found[0][0])}, commit {found[0][0]['commit']}"
        usual = {
            (row["case"]["columns"], row["case"]["scheme"]): row
            for row in mine
            if row["case"]["variant"] == "usual" and row["case"]["measure"] == "latency"
        }
        lines = [
            [str(columns), *(rdma_cell(usual.get((columns, scheme))) for scheme in RDMA_SCHEMES)]
            for columns in RDMA_COLUMNS
        ]
        tables.append(f"Latency over {where}, microseconds (operations, copies):\n\n")
        tables[-1] += markdown(["columns", *RDMA_SCHEMES], lines)
        exchange = [row for row in mine if row["case"]["measure"] == "alltoall"]
        schemes = list(dict.fromkeys(row["case"]["scheme"] for row in exchange))
        lasts = list(dict.fromkeys(row["case"]["columns"] for row in exchange))
        values = {(row["case"]["columns"], row["case"]["scheme"]): row["value"] / 1000 for row in exchange}
        lines = [[str(last), *(microseconds(values.get((last, scheme))) for scheme in schemes)] for last in lasts]
        if lines:
            ranks = exchange[0]["case"]["variant"]
            tables.append(f"`MPI_Alltoall` of the {ranks}, beside {fabric}, milliseconds:\n\n")
            tables[-1] += markdown(["ints of the last block", *schemes], lines)
    return "\n\n".join(tables) or NOT_MEASURED


def rdma_cell(row: dict | None) -> str:
    return "" if row is None else f"{microseconds(row['value'])} ({row['posts']:g}, {row['copies']:g})"


def endpoints_table(results: list[dict]) -> str:
    """What endpoints reach, beside processes, threads that share a rank, and a copy."""
    scales = {"messages/s": (1e-6, "million a second"), "s": (1e6, "us"), "ns": (1, "ns")}
    found = rows_of(results, "endpoints")
    if not found:
        return NOT_MEASURED
    peers = list(dict.fromkeys(peer for _, row in found for peer in row["peers"]))
    lines = []
    for _, row in found:
        case, (scale, unit) = row["case"], scales[row["unit"]]
        name = f"{case['what']}, {case['way']}"
        values = [row["value"], *(row["peers"].get(peer) for peer in peers)]
        numbers = ["" if value is None else f"{scale * value:.3g}" for value in values]
        lines.append(
            [case["library"], name, str(case["ranks"]), str(case["size"]), unit, f"**{numbers[0]}**", *numbers[1:]]
        )
    heads = ["library", "what", "endpoints a process", "bytes or depth", "", "endpoints", *peers]
    return f"On {machine_name(found[0][0])}, commit {found[0][0]['commit']}:\n\n" + markdown(heads, lines)
