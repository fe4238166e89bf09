"""The GPU packing benchmark's verdicts: each bar holds and fails where it should, and results are JSON in any case."""

import json
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))

import _report  # noqa: E402  (found through the line above)
import collectives  # noqa: E402
import ddtbench  # noqa: E402
import starts  # noqa: E402
from _pack import bars as pack_bars  # noqa: E402
from _pack import rows as pack_rows  # noqa: E402

LINES = """
{"machine": "a GPU", "multiprocessors": 1}
{"table": "large", "case": {"layout": "x", "bytes": 67108864}, "value": 91, "unit": "GB/s", "bound": 100, "peers": {}}
"""


def row(table, value, bound=None, size=64 << 20, peers=None, **case):
    case = {"table": table, "family": "2-D", "layout": "vector", "direction": "pack", "bytes": size, **case}
    return {"case": case, "value": value, "unit": "GB/s", "bound": bound, "peers": peers or {}}


def strided(length, value, bound, hand):
    peers = {pack_rows.HAND: hand}
    return row("block_lengths", value, bound, peers=peers, layout=f"vector, {length} B every 512 B")


def test_the_program_speaks_of_a_machine_and_rows():
    machine, rows = pack_rows.parse(LINES)
    assert machine == "a GPU"
    assert rows[0]["case"] == {"table": "large", "layout": "x", "bytes": 64 << 20}
    assert "table" not in rows[0]


@pytest.mark.parametrize(
    "value, hand, holds",
    [
        (90, 100, True),  # reaches the bound
        (89, 100, False),  # does not, and the bound can be reached
        (60, 62, True),  # memory cannot do it, and gapless is within 5 % of what it can
        (50, 62, False),
    ],
)
def test_large_packs_are_held_against_the_bound_or_against_what_memory_can_do(value, hand, holds):
    bar = pack_bars.large([row("large", value, bound=100, peers={pack_rows.HAND: hand, pack_rows.COPY: 95})])
    assert bar["holds"] is holds


def test_medium_packs_pay_for_starting_a_kernel_as_a_copy_does():
    peers = {pack_rows.HAND: 49, pack_rows.COPY: 50}
    assert pack_bars.medium([row("large", 41, bound=100, size=1 << 20, peers=peers)])["holds"]
    assert not pack_bars.medium([row("large", 39, bound=100, size=1 << 20, peers=peers)])["holds"]


def test_host_memory_has_a_bar_for_each_direction():
    rows = [row("one_shot", 94, bound=100), row("one_shot", 92, bound=100, direction="unpack")]
    into, out_of = pack_bars.one_shot(rows)
    assert into["holds"] and not out_of["holds"]


def test_odd_lengths_are_compared_with_both_neighbours():
    rows = [strided(8, 90, 100, 90), strided(16, 80, 100, 80)]
    assert pack_bars.block_lengths([*rows, strided(12, 77, 100, 90)])["holds"]
    missed = pack_bars.block_lengths([*rows, strided(12, 75, 100, 90)])
    assert not missed["holds"] and "worst 0.94" in missed["figure"]  # of the neighbour that reaches 80
    assert pack_bars.block_lengths(rows) is None  # nothing to judge is no success


@pytest.mark.parametrize("direction, value, holds", [("pack", 75, True), ("pack", 70, False), ("unpack", 75, False)])
def test_rows_of_five_to_seven_words_may_be_read_a_little_slower(direction, value, holds):
    rows = [strided(length, rate, 100, 90) for length, rate in ((16, 85), (20, value), (32, 90))]
    for one in rows:
        one["case"]["direction"] = direction
    assert pack_bars.block_lengths(rows)["holds"] is holds


def test_one_slow_construction_fails_the_bar_and_is_named():
    good = row("constructions", 100, peers={"hvector": 99}, layout="good")
    bad = row("constructions", 100, peers={"hvector": 94}, layout="bad")
    bar = pack_bars.constructions([good, bad])
    assert not bar["holds"]
    assert "1 of 2 hold" in bar["figure"] and "bad" in bar["figure"]


def test_vendor_calls_count_only_where_a_kernel_can_beat_them():
    peers = {"cudaMemcpy2DAsync": 9.0, "cudaMemcpyAsync of as many bytes": 5.0, pack_rows.HAND: 8.0}
    assert pack_bars.vendor([row("types", 8.5, peers=peers)])["holds"]
    assert not pack_bars.vendor([row("types", 9.5, peers=peers)])["holds"]
    assert pack_bars.vendor([row("types", 9.5, peers={**peers, pack_rows.HAND: 9.2})]) is None


@pytest.mark.parametrize(
    "resident, size, value, holds",
    [
        ("no", 64, 7.6, True),
        ("no", 64, 7.8, False),
        ("yes", 64, 3.4, True),
        ("ready", 64, 3.6, False),
        ("ready", 64 << 10, 3.8, True),
        ("yes", 64 << 10, 3.9, False),
    ],
)
def test_latencies_are_times_so_smaller_is_better(resident, size, value, holds):
    peers = {"empty kernel, completion polled": 7.0}
    bars = pack_bars.latency([row("latency", value, size=size, peers=peers, resident=resident)])
    assert [bar["holds"] for bar in bars if bar] == [holds]


def test_a_result_file_is_json_with_a_line_a_row(tmp_path):
    result = {"benchmark": "pack", "machine": "µ", "rows": [row("large", 1), row("large", 2)], "bars": []}
    text = _report.as_text(result)
    assert json.loads(text) == result
    assert sum('"case"' in line for line in text.splitlines()) == 2


@pytest.mark.parametrize("order, holds", [("user first", True), ("pack first", False)])
def test_beside_a_busy_program_the_better_engine_counts(order, holds):
    def busy(engine, own, both):
        return row("contention", own, peers={"both together": both}, engine=engine, order=order, user="a kernel")

    rows = [busy("gapless", 104, 220), busy("kernel", 100, 200), busy("copy engine", 120, 230)]
    assert pack_bars.contention(rows)["holds"] is holds


def test_a_miss_is_not_hidden_by_rounding():
    assert [_report.ratio_text(ratio, 1.05) for ratio in (1.04, 1.0449, 1.05, 1.053)] == [
        "1.04",
        "1.04",
        "1.05",
        "1.053",
    ]
    row = {"case": {"exchange": "halo", "library": "openmpi"}, "value": 1.053, "bound": 1}
    slab = {"case": {"exchange": "slab", "library": "openmpi"}, "value": 1, "bound": 1}
    missed = list(collectives.bars([row, slab]))[-1]
    assert not missed["holds"] and missed["figure"] == "1.053 (halo)"


def test_what_a_start_may_cost_is_said_of_the_dearest_job():
    def row(ranks, moment, unit, value):
        return {
            "case": {"library": "mpich", "ranks": ranks, "moment": moment},
            "value": value,
            "unit": unit,
            "bound": 40,
        }

    rows = [row(2, "MPI_Init", "ms", 45), row(16, "MPI_Init", "ms", 52), row(2, "first messages", "MiB", 41)]
    rows += [row(2, "first messages", "ms", 400), row(2, "MPI_Init", "MiB", 400)]
    init, memory = starts.bars(rows)
    assert not init["holds"] and init["figure"] == "12.0 ms (16 processes)"
    assert memory["holds"] and memory["figure"] == "1.0 MiB (2 processes)"


def test_a_message_of_ddtbench_takes_the_medians_of_its_phases():
    lines = ["testname packMethod bytes id time more"]
    lines += [f"P manual 480 {phase} {us} NA" for phase, us in (("pack", 1), ("communication", 5), ("unpack", 2))]
    lines += ["P manual 480 communication 7 NA", "P manual 480 communication 90 NA"]
    lines += ["P mpi_ddt 480 ddt_create_overhead 50 NA", "P mpi_ddt 480 communication 3 NA"]
    assert ddtbench.times_of(lines) == {("P", 480, "manual"): 10, ("P", 480, "mpi_ddt"): 3}


def test_datatypes_of_ddtbench_are_held_against_both_ways_of_the_library():
    def job(manual, datatypes, reference=1):
        times = {"manual": manual, "mpi_ddt": datatypes, "reference": reference}
        return {("P", 480, method): time for method, time in times.items()}

    alone = [job(8, 3), job(10, 4), job(90, 90)]
    (row,) = ddtbench.rows_of("mpich", alone, [job(1, 5), job(1, 5), job(1, 6)])
    assert row["value"] == 5 and row["peers"] == {
        "contiguous": 1,
        "packed by hand": 10,
        "the library's datatypes": 4,
    }
    by_hand, by_library = ddtbench.bars([row])
    assert by_hand["holds"] and by_hand["figure"] == "2.00 times as fast"
    assert not by_library["holds"] and by_library["figure"] == "0.80 (P, 480 B)"
