"""Figures of the GPU packing benchmark, drawn with matplotlib from a result file."""

import re

from _pack.rows import HAND, LAUNCH, of_table, size
from _plots import pyplot

RESIDENT = {
    "no": "gapless",
    "yes": "gapless, resident kernel",
    "ready": "gapless, resident kernel, buffers ready",
}
# One look for each contestant in all figures.
LOOKS = {
    "gapless": {"color": "#0b6e4f", "linewidth": 2, "marker": "o", "markersize": 3},
    RESIDENT["yes"]: {"color": "#54b848", "linewidth": 2, "marker": "o", "markersize": 3},
    RESIDENT["ready"]: {"color": "#9bd770", "linewidth": 2, "marker": "o", "markersize": 3},
    HAND: {"color": "#e08e0b", "linestyle": "--", "marker": "s", "markersize": 3},
    "traffic bound": {"color": "#444444", "linestyle": ":"},
    LAUNCH: {"color": "#444444", "linestyle": ":"},
    "cudaMemcpy2DAsync": {"color": "#3a6ea5", "marker": "^", "markersize": 3},
    "cudaMemcpy3DAsync": {"color": "#3a6ea5", "marker": "^", "markersize": 3},
    "cudaMemcpyAsync a block": {"color": "#8fb3d9", "marker": "v", "markersize": 3},
    "cudaMemcpyBatchAsync": {"color": "#7b68a6", "marker": "d", "markersize": 3},
    "cudaMemcpyAsync of as many bytes": {"color": "#999999", "linestyle": "-."},
}


def line(axes, name, points):
    """Points may be missing; a name without a look of its own gets the next colour."""
    points = [(x, y) for x, y in points if y is not None]
    if points:
        axes.plot(*zip(*sorted(points), strict=True), label=name, **LOOKS.get(name, {"marker": "x", "markersize": 3}))


def finish(figure, result, folder, name):
    figure.text(0.995, 0.005, f"{result['machine']}, {result['commit']}, {result['date']}", ha="right", fontsize=6)
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    machine = re.sub(r"[^a-z0-9]+", "_", result["machine"].lower()).strip("_")
    figure.savefig(folder / f"pack_{name}_{machine}.svg", metadata={"Date": None})
    pyplot.close(figure)


def byte_axis(axes, values):
    axes.set_xscale("log", base=2)
    shown = sorted(set(values))
    shown = shown[:: max(1, len(shown) // 7)]
    axes.set_xticks(shown, [size(value) for value in shown], fontsize=7)
    axes.minorticks_off()


def legend_of_all(figure, axes):
    """One legend for all panels, each name once."""
    entries = {}
    for panel in axes:
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncols=4, fontsize=7, bbox_to_anchor=(0.5, 1.0))


def draw_block_lengths(result, folder):
    rows = of_table(result["rows"], "block_lengths")
    figure, panels = pyplot.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    for axes, direction in zip(panels, ("pack", "unpack"), strict=True):
        mine = [(int(row["case"]["layout"].split()[1]), row) for row in rows if row["case"]["direction"] == direction]
        line(axes, "traffic bound", [(length, row["bound"]) for length, row in mine])
        line(axes, "gapless", [(length, row["value"]) for length, row in mine])
        for name in dict.fromkeys(
            name for _, row in mine for name in row["peers"] if name != "copy of the same traffic"
        ):
            line(axes, name, [(length, row["peers"].get(name)) for length, row in mine])
        axes.set_yscale("log")
        byte_axis(axes, [length for length, _ in mine])
        axes.set_title(f"{direction}, 32 to 64 MiB", fontsize=9)
        axes.set_xlabel("block length")
    panels[0].set_ylabel("GB/s of packed bytes")
    legend_of_all(figure, panels[:1])
    finish(figure, result, folder, "block_lengths")


def draw_classes(result, folder):
    rows = [row for row in of_table(result["rows"], "large") if row["case"]["bytes"] >= 60 << 20]
    names = list(dict.fromkeys(row["case"]["layout"] for row in rows))
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 0.32 * len(names) + 1), sharey=True)
    for axes, direction in zip(panels, ("pack", "unpack"), strict=True):
        mine = {row["case"]["layout"]: row for row in rows if row["case"]["direction"] == direction}
        places = range(len(names))
        axes.barh(places, [mine[n]["value"] / mine[n]["bound"] for n in names], color="#0b6e4f", label="gapless")
        hand = [mine[n]["peers"][HAND] / mine[n]["bound"] for n in names]
        axes.plot(hand, places, "|", color="#e08e0b", markersize=11, markeredgewidth=2.5, label=HAND)
        axes.axvline(0.9, color="#444444", linestyle=":", linewidth=1)
        axes.set_xlim(0, 1.05)
        axes.set_title(f"{direction}, 64 MiB", fontsize=9)
        axes.set_xlabel("fraction of the traffic bound")
    panels[0].set_yticks(range(len(names)), names, fontsize=7)
    panels[0].invert_yaxis()
    panels[1].legend(loc="lower right", fontsize=7)
    finish(figure, result, folder, "classes")


def draw_latency(result, folder):
    rows = [row for row in of_table(result["rows"], "latency") if row["case"]["layout"].startswith("vector, 8 B")]
    figure, panels = pyplot.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    for axes, direction in zip(panels, ("pack", "unpack"), strict=True):
        mine = [row for row in rows if row["case"]["direction"] == direction]
        for resident, name in RESIDENT.items():
            chosen = [row for row in mine if row["case"]["resident"] == resident]
            line(axes, name, [(row["case"]["bytes"], row["value"]) for row in chosen])
        plain = [row for row in mine if row["case"]["resident"] == "no"]
        for name in dict.fromkeys(name for row in plain for name in row["peers"]):
            shown = name.removesuffix(", synchronised")
            line(axes, shown, [(row["case"]["bytes"], row["peers"].get(name)) for row in plain])
        byte_axis(axes, [row["case"]["bytes"] for row in plain])
        axes.set_ylim(0, 40)
        axes.set_title(f"{direction}, 8 B blocks", fontsize=9)
        axes.set_xlabel("packed bytes")
    panels[0].set_ylabel("µs until the data is there")
    legend_of_all(figure, panels[:1])
    finish(figure, result, folder, "latency")


def kind(row):
    """What stays the same from size to size."""
    case = row["case"]
    return "4-D subarray of 64^4 floats" if case["family"] == "4-D" else case["layout"]


def draw_types(result, folder):
    rows = of_table(result["rows"], "types")
    kinds = list(dict.fromkeys(kind(row) for row in rows))
    figure, panels = pyplot.subplots(2, len(kinds), figsize=(1.9 * len(kinds), 5), sharey=True, sharex=True)
    for upper, destination in zip(panels, ("GPU", "host"), strict=True):
        for axes, name in zip(upper, kinds, strict=True):
            mine = [row for row in rows if row["case"]["destination"] == destination and kind(row) == name]
            line(axes, "gapless", [(row["case"]["bytes"], row["value"]) for row in mine])
            for peer in dict.fromkeys(peer for row in mine for peer in row["peers"]):
                line(axes, peer, [(row["case"]["bytes"], row["peers"].get(peer)) for row in mine])
            axes.set_yscale("log")
            axes.set_title(f"{name}\nto the {destination}", fontsize=7)
            axes.tick_params(labelsize=7)
    byte_axis(panels[0][0], [64, 4 << 10, 256 << 10, 4 << 20])
    for row in panels:
        row[0].set_ylabel("µs")
    legend_of_all(figure, panels.flat)
    finish(figure, result, folder, "types")


def draw(result, folder):
    drawings = {
        "block_lengths": draw_block_lengths,
        "large": draw_classes,
        "latency": draw_latency,
        "types": draw_types,
    }
    for table, drawing in drawings.items():
        if of_table(result["rows"], table):
            drawing(result, folder)
