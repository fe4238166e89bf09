"""Figures of the RDMA benchmark: latency and bandwidth by scheme, the exchange, and the ablations, for each fabric."""

from _plots import pyplot

PANELS = (("usual", "latency"), ("usual", "bandwidth"), (None, "alltoall"))
ABLATIONS = {"no segment unpack": "gather-write", "single posts": "multi-write", "new buffers": "multi-write"}
XLABEL = {"alltoall": "ints of the last block"}


def rows_of(result, fabric, variant, measure):
    for row in result["rows"]:
        case = row["case"]
        if case["fabric"] == fabric and case["measure"] == measure and variant in (None, case["variant"]):
            yield case["scheme"], case["columns"], row


def lines(axes, points):
    for name in dict.fromkeys(name for name, _, _ in points):
        of_name = sorted((x, y) for other, x, y in points if other == name)
        axes.plot(*zip(*of_name, strict=True), label=name, marker="o", markersize=3)


def ablation(result, fabric):
    """How many times as long a message takes without what is varied."""
    usual = {(scheme, columns): row["value"] for scheme, columns, row in rows_of(result, fabric, "usual", "latency")}
    for variant, scheme in ABLATIONS.items():
        for of_scheme, columns, row in rows_of(result, fabric, variant, "latency"):
            if of_scheme == scheme:
                yield f"{variant} ({scheme})", columns, row["value"] / usual[scheme, columns]


def draw(result, folder):
    fabrics = dict.fromkeys(row["case"]["fabric"] for row in result["rows"])
    for fabric in fabrics:
        figure, all_axes = pyplot.subplots(1, len(PANELS) + 1, figsize=(16, 3.6))
        for axes, (variant, measure) in zip(all_axes, PANELS, strict=False):
            found = list(rows_of(result, fabric, variant, measure))
            lines(axes, [(scheme, columns, row["value"]) for scheme, columns, row in found])
            axes.set_title(measure)
            axes.set_ylabel(found[0][2]["unit"] if found else "")
            axes.set_yscale("log")
        lines(all_axes[-1], list(ablation(result, fabric)))
        all_axes[-1].set_title("ablations")
        all_axes[-1].set_ylabel("times the usual latency")
        for axes, (_, measure) in zip(all_axes, (*PANELS, (None, "latency")), strict=True):
            axes.set_xscale("log", base=2)
            axes.set_xlabel(XLABEL.get(measure, "columns"))
            axes.legend(fontsize=7)
        figure.suptitle(f"{fabric}, {result['machine']}, commit {result['commit']}")
        figure.tight_layout()
        figure.savefig(folder / f"rdma_{fabric}.svg", metadata={"Date": None})
        pyplot.close(figure)
