"""The tables of the documentation that tell how long messages take, and what endpoints reach."""

from functools import partial

from gapless.documents.results import machine_name
from gapless.documents.tables import NOT_MEASURED, library_name, markdown, rows_of, size_text, with_best_in_bold

YARDSTICKS = (
    "copy",
    "memcpy",
    "bus",
    "host pack",
    "contiguous",
)  # what messages are compared with and cannot be, so that no row is won by them


def microseconds(value: float | None) -> str:
    """With as many digits as are worth a look."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table_beside_peers(found: list[tuple[dict, dict]], heads: list[str], cells_of) -> str:
    """One line a row: the cells that name it, gapless's time, and that of each other way."""
    peers = list(dict.fromkeys(peer for _, row in found for peer in row["peers"]))
    lines = [[*cells_of(row["case"]), *beside_peers(row, peers, microseconds, min)] for _, row in found]
    return markdown([*heads, "gapless", *peers], lines)


def beside_peers(row: dict, peers: list[str], text_of, best) -> list[str]:
    """gapless's figure and each peer's, the best of them bold."""
    values = [row["value"], *(row["peers"].get(peer) for peer in peers)]
    texts = [text_of(value) for value in values]
    judged = [0, *(i for i, peer in enumerate(peers, 1) if peer not in YARDSTICKS)]
    marked = with_best_in_bold([texts[i] for i in judged], [values[i] for i in judged], best)
    for i, text in zip(judged, marked, strict=True):
        texts[i] = text
    return texts


def gpu_messages_table(results: list[dict]) -> str:
    """Messages between GPU buffers."""
    return messages_table(results, "gpu")


def mixed_messages_table(results: list[dict]) -> str:
    """Messages between GPU memory and host memory."""
    return messages_table(results, "mixed")


def messages_table(results: list[dict], memory: str) -> str:
    """Messages between buffers in such memory: a table for each MPI library."""
    return tables_by_library(
        [pair for pair in rows_of(results, "messages") if pair[1]["case"]["memory"] == memory],
        ["bytes", "blocks of"],
        lambda case: [size_text(case["bytes"]), size_text(case["block"]) if case["block"] else "contiguous"],
    )


def gpu_halos_table(results: list[dict]) -> str:
    """Halo exchanges of GPU memory, all libraries in one table."""
    found = rows_of(results, "halo")
    if not found:
        return NOT_MEASURED
    cells = table_beside_peers(
        found,
        ["library", "form", "box"],
        lambda case: [library_name(case["library"]), case["form"], f"{case['points']}³, {case['width']} wide"],
    )
    origin = f"{machine_name(found[0][0])}, commit {found[0][0]['commit']}, microseconds:"
    return "\n\n".join(filter(None, (origin, cells, forms_without_target(results))))


def forms_without_target(results: list[dict]) -> str:
    """How many times the best time by hand the forms take of which nothing is asked."""
    asked = " ".join(bar["name"] for result in results if result["benchmark"] == "halo" for bar in result["bars"])
    ratios: dict[str, list[float]] = {}
    for _, row in rows_of(results, "halo"):
        if row["case"]["form"] not in asked and row["peers"]:
            ratios.setdefault(row["case"]["form"], []).append(row["value"] / min(row["peers"].values()))
    said = [f"*{form}* {min(of):.2g} to {max(of):.2g}" for form, of in ratios.items()]
    return f"Forms without a target, times the best by hand: {'; '.join(said)}." if said else ""


def by_library_and_machine(found: list[tuple[dict, dict]]) -> dict[tuple[str, str], list[tuple[dict, dict]]]:
    """The rows of each library, by what machine and commit they are of."""
    groups: dict[tuple[str, str], list[tuple[dict, dict]]] = {}
    for result, row in found:
        origin = f"{machine_name(result)}, commit {result['commit']}"
        groups.setdefault((row["case"]["library"], origin), []).append((result, row))
    return groups


def tables_by_library(found: list[tuple[dict, dict]], heads: list[str], cells_of, beside=lambda rows: "") -> str:
    """table_beside_peers() for each MPI library and machine; `beside(rows)` is added to a table's introduction."""
    tables = []
    for (library, machine), mine in by_library_and_machine(found).items():
        introduction = f"{library_name(library)} ({machine}), microseconds{beside([row for _, row in mine])}:"
        tables.append(f"{introduction}\n\n{table_beside_peers(mine, heads, cells_of)}")
    return "\n\n".join(tables) or NOT_MEASURED


def host_messages_table(results: list[dict]) -> str:
    """Messages in host memory between two processes of a node."""

    def time_of_8_bytes(rows):
        plain = sorted(row["plain"] for row in rows if "plain" in row)
        return f", while half a round trip of 8 B took {plain[0]:.2f} to {plain[-1]:.2f}" if plain else ""

    found = rows_of(results, "host_messages")
    return tables_by_library(found, ["message"], lambda case: [case["message"]], time_of_8_bytes)


def application_messages_table(results: list[dict]) -> str:
    """DDTBench's messages."""
    found = rows_of(results, "ddtbench")
    return tables_by_library(found, ["pattern", "bytes"], lambda case: [f"`{case['pattern']}`", str(case["bytes"])])


RDMA_COLUMNS = (1, 16, 128, 512, 2048)
# As results name them, and as documents do where that is another word.
RDMA_SCHEMES = ("pipelined", "gather-write", "scatter-read", "multi-write", "packed", "chosen", "contiguous")
RDMA_NAMES = {"pipelined": "fabric-pipelined"}  # pipelined is a scheme of GPU memory


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
        tables[-1] += markdown(["columns", *(RDMA_NAMES.get(scheme, scheme) for scheme in RDMA_SCHEMES)], lines)
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


def three_digits(scale: float, value: float | None) -> str:
    if value is None:
        return ""
    return f"{scale * value:.0f}" if scale * value >= 1000 else f"{scale * value:.3g}"


# Of bytes and of depths; the others are in the result alone.
ENDPOINT_SIZES = (0, 8, 1024, 4096, 65536, 262144, 1048576)


def endpoints_table(results: list[dict]) -> str:
    """What endpoints reach, beside processes, threads that share a rank, and a copy: a table for each MPI library."""
    scales = {"messages/s": (1e-6, "million a second"), "s": (1e6, "us"), "ns": (1, "ns")}
    found = rows_of(results, "endpoints")
    if not found:
        return NOT_MEASURED
    peers = list(dict.fromkeys(peer for _, row in found for peer in row["peers"]))
    lines: dict[str, list[list[str]]] = {}
    for _, row in found:
        case, (scale, unit) = row["case"], scales[row["unit"]]
        if case["size"] not in ENDPOINT_SIZES:
            continue
        name = f"{case['what']}, {case['way']}"
        best = max if row["unit"] == "messages/s" else min
        numbers = beside_peers(row, peers, partial(three_digits, scale), best)
        of_library = lines.setdefault(library_name(case["library"]), [])
        of_library.append([name, str(case["ranks"]), str(case["size"]), unit, *numbers])
    heads = ["what", "endpoints a process", "bytes or depth", "", "endpoints", *peers]
    origin = f"{machine_name(found[0][0])}, commit {found[0][0]['commit']}"
    return "\n\n".join(f"{library} ({origin}):\n\n{markdown(heads, rows)}" for library, rows in lines.items())
