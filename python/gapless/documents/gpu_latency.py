"""How long calls on GPU memory take, beside an empty kernel."""

from gapless.documents.tables import NOT_MEASURED, machines, markdown, rows_of, size_text

EMPTY_KERNEL = "empty kernel, completion polled"


# What GAPLESS_RESIDENT says.
CALLS = {
    "no": "`MPI_Pack`, `MPI_Unpack` of GPU memory",
    "yes": "`GAPLESS_RESIDENT=1`",
    "ready": "`GAPLESS_RESIDENT=ready`",
}


def gpu_latency_table(results: list[dict]) -> str:
    """What a call takes, and a batch, over an empty kernel ("E") whose end is polled, by size."""
    of_pack = rows_of(results, "pack")
    found = [(result, row) for result, row in of_pack if row["case"]["table"] == "latency"]
    halos = [row for _, row in of_pack if row["case"]["table"] == "halo"]
    if not found or not halos:
        return NOT_MEASURED
    layout = found[0][1]["case"]["layout"]
    ratios: dict[int, dict[str, list[float]]] = {}
    for case, ratio in [(row["case"], over_empty_kernel(row, row["value"])) for _, row in found]:
        if case["layout"] == layout:
            ratios.setdefault(case["bytes"], {}).setdefault(case["resident"], []).append(ratio)
    heads = [f"{layout}: call / E", *map(size_text, ratios)]
    lines = [[name, *(range_of(of.get(resident, [])) for of in ratios.values())] for resident, name in CALLS.items()]
    calls = markdown(heads, lines)
    heads = ["26 regions of a cube of floats, faces up to", *(size_text(face_bytes(row)) for row in halos)]
    lines = [
        ["one batch / E", *(f"{over_empty_kernel(row, row['value']):.2f}" for row in halos)],
        ["26 calls / E", *(f"{over_empty_kernel(row, row['peers']['26 calls']):.0f}" for row in halos)],
    ]
    origin = f"{machines(found)}, commit {found[0][0]['commit']}:"
    return "\n\n".join((origin, calls, markdown(heads, lines)))


def over_empty_kernel(row: dict, us: float) -> float:
    return us / row["peers"][EMPTY_KERNEL]


def face_bytes(row: dict) -> int:
    return int(row["case"]["largest face"].split()[0])


def range_of(ratios: list[float]) -> str:
    if not ratios:
        return ""
    least, most = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return least if least == most else f"{least}–{most}"
