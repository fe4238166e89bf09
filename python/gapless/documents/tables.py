"""The tables of the documentation, made from committed benchmark results."""

import statistics

from gapless.documents.results import machine_name, shown

BESIDE_LIBRARIES = "pack_beside_libraries"  # the GPU benchmark with other libraries
NOT_MEASURED = "Not measured."
LIBRARIES = {"mpich": "MPICH", "openmpi": "Open MPI"}  # as documents call them, by the names in results

HOST_LAYOUTS = {
    "vector, 8 B every 16 B x 65536, double": "every other double of 1 MiB",
    "small, 8 B every 32 B x 128, double": "every fourth double of 4 KiB",
    "vector, 64 B every 512 B x 65536, int": "64 bytes every 512",
    "struct {double, int, int, char} x 100000": "struct {double, int, int, char}",
    "4-D subarray 16^4 of 64^4 floats": "corner 16⁴ of 64⁴ floats",
    "transposed 1000 x 1000 floats": "1000 x 1000 floats, transposed",
    "indexed, 4..64 B x 100000, random gaps, int": "list of blocks of 4 to 64 bytes",
}
GPU_FACES = {
    "subarray 1x256x256 of 256x256x256, 8 B elements": "first of 256 planes",
    "subarray 256x1x256 of 256x256x256, 8 B elements": "a row of every plane",
    "subarray 256x256x1 of 256x256x256, 8 B elements": "a double of every row",
}
HALO = "26 regions of 128^3 floats"
# What the names of host messages of a kind begin with.
NODE_MESSAGES = {
    "columns, one at a time": ("latency, columns",),
    "2 to 32 MiB, one at a time": ("latency, blocks",),
    "columns, 32 under way": ("bandwidth, columns",),
    "26 pieces of a halo, `MPI_Sendrecv`": ("halo, Sendrecv",),
    "26 pieces of a halo, `MPI_Isend` and `MPI_Irecv`": ("halo, Isend",),
    "26 pieces of a halo, `MPI_Startall`": ("halo, Startall",),
    "`MPI_Alltoallw` of subarrays": ("Alltoallw",),
    "contiguous, one at a time": ("latency, contiguous", "latency, plain"),
    "contiguous, 32 under way": ("bandwidth, contiguous",),
}
# What DDTBench's names of an application's patterns begin with.
APPLICATIONS = {
    "WRF": "WRF",
    "MILC": "MILC",
    "NAS_LU": "NAS LU",
    "NAS_MG": "NAS MG",
    "LAMMPS": "LAMMPS",
    "SPECFEM3D": "SPECFEM3D",
    "FFT": "FFT in two dimensions",
}
BY_HAND, BY_LIBRARY = "packed by hand", "the library's datatypes"


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def with_best_in_bold(texts: list[str], values: list[float | None], best=min) -> list[str]:
    """Cells of one row; those that read as the best one does are all bold."""
    known = [(value, text) for value, text in zip(values, texts, strict=True) if value is not None]
    if not known:
        return texts
    winner = best(known)[1]
    return [f"**{text}**" if text == winner else text for text in texts]


def rows_of(results: list[dict], benchmark: str) -> list[tuple[dict, dict]]:
    """Every row of one benchmark, with the result it belongs to."""
    return [(result, row) for result in results if result["benchmark"] == benchmark for row in result["rows"]]


def library_name(text: str) -> str:
    """As documents call a library that a result names by a word, or by what the library says of itself."""
    words = " ".join(text.replace("Version:", "").split())
    return LIBRARIES.get(text, words.replace(" v", " "))


def machines(found: list[tuple[dict, dict]]) -> str:
    return ", ".join(dict.fromkeys(machine_name(result) for result, _ in found))


def host_table(results: list[dict]) -> str:
    """Packing a few layouts on the host, a table for each machine."""
    measured = [result for result in results if result["benchmark"] == "host_pack"]
    return "\n\n".join(map(table_of_host, measured)) or NOT_MEASURED


def table_of_host(result: dict) -> str:
    """Each library beside gapless as they were in one process."""
    found = [
        row for row in result["rows"] if row["case"]["direction"] == "pack" and row["case"]["layout"] in HOST_LAYOUTS
    ]
    libraries = list(dict.fromkeys(row["case"]["library"] for row in found))
    heads = [f"packed on the host ({machine_name(result)}, one core), GB/s"]
    for library in libraries:
        heads += [library_name(library), "gapless"]
    cells = {layout: [name] for layout, name in HOST_LAYOUTS.items()}
    for library in libraries:
        for row in found:
            if row["case"]["library"] == library:
                rates = [row["peers"][library], row["value"]]
                cells[row["case"]["layout"]] += with_best_in_bold([f"{rate:.1f}" for rate in rates], rates, max)
    return markdown(heads, list(cells.values()))


def gpu_table(results: list[dict]) -> str:
    """Packing the faces of a cube on the GPU, beside the vendor's call and other libraries."""
    found = [
        (result, row)
        for result, row in rows_of(results, BESIDE_LIBRARIES)
        if row["case"]["table"] == "faces" and row["case"]["direction"] == "pack" and row["case"]["layout"] in GPU_FACES
    ]
    if not found:
        return NOT_MEASURED
    others = [name for name in dict.fromkeys(name for _, row in found for name in row["peers"]) if is_other(name)]
    heads = [f"faces of 256³ doubles, packed on the GPU ({machines(found)}), GB/s", "cudaMemcpy2D or 3D", *others]
    rows = []
    for _, row in found:
        vendor = max(row["peers"].get(call, 0) for call in ("cudaMemcpy2DAsync", "cudaMemcpy3DAsync"))
        rates = [vendor, *(row["peers"].get(name) for name in others), row["value"]]
        rows.append([GPU_FACES[row["case"]["layout"]], *with_best_in_bold(list(map(rate_text, rates)), rates, max)])
    return markdown([*heads, "gapless"], rows)


def rate_text(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.0f}"


def is_other(peer: str) -> bool:
    """Is it another library, rather than the vendor's calls or a yardstick of the benchmark's own?"""
    return not peer.startswith(("cuda", "copy", "hand"))


def halo_sentence(results: list[dict]) -> str:
    for _, row in rows_of(results, "pack"):
        if row["case"]["table"] == "halo" and row["case"]["layout"] == HALO:
            return (
                f"The 26 halo regions of 128³ floats, up to 64 KiB each, are packed on that GPU in "
                f"**{row['value']:.1f} us** by one launch; one call a region takes {row['peers']['26 calls']:.0f} us."
            )
    return NOT_MEASURED


def types_table(results: list[dict]) -> str:
    """What a datatype's life or its uses cost, over what they cost in the library, by the number of uses."""
    ratios: dict[tuple[str, str], dict[str, str]] = {}
    heads = ["datatype", "library"]
    found = [(result, row) for result, row in rows_of(results, "types") if "uses" in row["case"]]
    for _, row in found:
        case = row["case"]
        head = f"{case['uses']} uses" if case["uses"] > 1 else "1 use"
        if head not in heads:
            heads.append(head)
        of_this = ratios.setdefault((case["type"], library_name(case["library"])), {})
        of_this[head] = f"{row['value'] / row['bound']:.2f}"
    if not found:
        return NOT_MEASURED
    # Of the hugest types a hundred uses are not measured.
    lines = [[*case, *(measured.get(head, "") for head in heads[2:])] for case, measured in ratios.items()]
    return f"On {machines(found)}:\n\n" + markdown(heads, lines)


def readme(results: list[dict]) -> str:
    targets = [bar for result in results for bar in result["bars"]]
    met = sum(target["holds"] for target in targets)
    link = f"{met} of the {len(targets)} targets that gapless sets itself are met: [every target](docs/results.md)."
    parts = (gpu_programs_table, applications_table, node_messages_table, host_table, gpu_table, halo_sentence)
    return "\n\n".join((*(part(results) for part in parts), link))


def gpu_programs_table(results: list[dict]) -> str:
    """Programs on GPU memory, by their own staging and through gapless: a row a case, a pair of columns a library."""
    found = rows_of(results, "gpu_programs")
    if not found:
        return NOT_MEASURED
    libraries = list(dict.fromkeys(row["case"]["library"] for _, row in found))
    heads = [f"programs on GPU memory ({machines(found)}), ms"]
    for library in libraries:
        heads += [f"{library_name(library)}, the program stages", "gapless"]
    cells: dict[tuple[str, str], list[str]] = {}
    for _, row in found:
        times = [row["peers"]["its own staging"], row["value"]]
        of_case = cells.setdefault((row["case"]["program"], row["case"]["case"]), [])
        of_case += with_best_in_bold([f"{time:.3g}" for time in times], times)
    return markdown(heads, [[f"{program}, {case}", *texts] for (program, case), texts in cells.items()])


def applications_table(results: list[dict]) -> str:
    """Messages of applications by datatypes, over the same messages packed by hand: a table for each machine, a row for
    each application, a pair of columns for each library."""
    measured = [result for result in results if result["benchmark"] == "ddtbench"]
    return "\n\n".join(map(table_of_applications, measured)) or NOT_MEASURED


def table_of_applications(result: dict) -> str:
    libraries = [name for name in LIBRARIES if any(row["case"]["library"] == name for row in result["rows"])]
    heads = [f"datatypes of applications ({machine_name(result)}), times the speed of packing by hand"]
    for name in libraries:
        heads += [LIBRARIES[name], "gapless"]
    rows = []
    for beginning, application in APPLICATIONS.items():
        cells = [application]
        for name in libraries:
            of_library = [row for row in result["rows"] if row["case"]["library"] == name]
            mine = [row for row in of_library if row["case"]["pattern"].startswith(beginning)]
            alone = [row["peers"][BY_HAND] / row["peers"][BY_LIBRARY] for row in mine]
            gapless = [row["peers"][BY_HAND] / row["value"] for row in mine]
            means = [statistics.geometric_mean(ratios) if ratios else None for ratios in (alone, gapless)]
            cells += with_best_in_bold([mean_and_range(alone), mean_and_range(gapless)], means, max)
        rows.append(cells)
    return markdown(heads, rows)


def node_messages_table(results: list[dict]) -> str:
    """How many times the library's speed messages in host memory have between two processes of a node: a table for
    each machine."""
    measured = [result for result in results if result["benchmark"] == "host_messages"]
    return "\n\n".join(map(table_of_node_messages, measured)) or NOT_MEASURED


def table_of_node_messages(result: dict) -> str:
    found = result["rows"]
    libraries = [name for name in LIBRARIES if any(row["case"]["library"] == name for row in found)]
    heads = [f"messages in a node ({machine_name(result)}), times the speed of the library alone"]
    rows = []
    for kind, beginnings in NODE_MESSAGES.items():
        of_kind = [row for row in found if row["case"]["message"].startswith(beginnings)]
        gains = [gains_of(row for row in of_kind if row["case"]["library"] == name) for name in libraries]
        if any(gains):
            rows.append([kind, *map(mean_and_range, gains)])
    return markdown([*heads, *(LIBRARIES[name] for name in libraries)], rows)


def gains_of(rows) -> list[float]:
    return [row["peers"]["native"] / row["value"] for row in rows]


def mean_and_range(ratios: list[float]) -> str:
    """The geometric mean, and the worst and the best."""
    return f"{statistics.geometric_mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""


def size_text(number: float) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= unit and number % unit == 0:
            return f"{number / unit:.0f} {name}"
    return f"{number:.0f} B"


def targets_table(results: list[dict]) -> str:
    """What each benchmark asks, and what was measured: one row a target, those that are missed first. Result files
    call targets bars."""
    heads = ["question", "target", "measured", "machine, commit"]
    parts = []
    for title, is_met in (("Missed", False), ("Met", True)):
        rows = [
            [
                f"{result['benchmark']}: {target['name']}",
                target["asks"],
                shown(target["figure"]),
                f"{machine_name(result)}, {result['commit']}",
            ]
            for result in results
            for target in result["bars"]
            if target["holds"] == is_met
        ]
        parts.append(f"## {title}: {len(rows)}\n\n" + markdown(heads, rows))
    return "\n\n".join(parts)


def gpu_classes_table(results: list[dict]) -> str:
    """Large packs of each class on each GPU, with the bound, the hand-written kernel and every other library."""
    tables = []
    for result in results:
        rows = [row for row in result["rows"] if row["case"].get("table") == "large"]
        largest = [row for row in rows if row["case"]["bytes"] >= 60 << 20]
        if not largest:
            continue
        peers = list(dict.fromkeys(name for row in largest for name in row["peers"]))
        contestants = [name for name in peers if not name.startswith("copy")]
        peers = [*contestants, *(name for name in peers if name not in contestants)]
        heads = ["layout", "", "gapless", "of the bound", *peers]
        cells = []
        for row in largest:
            rates = [row["value"], *(row["peers"].get(name) for name in contestants)]
            ours, *theirs = with_best_in_bold(list(map(rate_text, rates)), rates, max)
            copies = [rate_text(row["peers"].get(name)) for name in peers[len(contestants) :]]
            fraction = f"{row['value'] / row['bound']:.2f}"
            cells.append([row["case"]["layout"], row["case"]["direction"], ours, fraction, *theirs, *copies])
        origin = f"{machine_name(result)}, {result['date']}, commit {result['commit']}, GB/s of packed bytes:"
        tables.append(origin + "\n\n" + markdown(heads, cells))
    return "\n\n".join(tables) or NOT_MEASURED


def peer_ratios_table(results: list[dict]) -> str:
    """How many times each other library's rate gapless has, over all rates of the GPU benchmark that both reach."""
    ratios: dict[str, dict[str, list[float]]] = {}
    for _, row in rows_of(results, BESIDE_LIBRARIES):
        if row["unit"] != "GB/s":
            continue
        for peer, rate in row["peers"].items():
            if is_other(peer) and row["case"]["table"] in ("large", "block_lengths", "faces"):
                ratios.setdefault(peer, {}).setdefault(row["case"]["family"], []).append(row["value"] / rate)
    if not ratios:
        return NOT_MEASURED
    families = list(dict.fromkeys(family for of_peer in ratios.values() for family in of_peer))
    rows = [[family, *(spread(of_peer.get(family, [])) for of_peer in ratios.values())] for family in families]
    return markdown(["gapless, times the rate of", *ratios], rows)


def spread(ratios: list[float]) -> str:
    if not ratios:
        return ""
    return f"**{statistics.geometric_mean(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.4g}, {len(ratios)} rows)"
