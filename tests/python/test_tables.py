"""The documentation's tables say what the committed results say, and say so where nothing was measured."""

import json

import pytest

from gapless.documents import costs, gpu_latency, losses, messages, results, tables

ORIGIN = {"machine": {"name": "a machine"}, "commit": "abc", "date": "2026-01-01"}
BARS = [
    {"name": "fast", "asks": ">= 1", "figure": 1.2345, "holds": True},
    {"name": "faster", "asks": ">= 2", "figure": 1.5, "holds": False},
]


def host_row(library, layout, direction, rate, theirs):
    case = {"layout": layout, "direction": direction, "library": library}
    return {"case": case, "value": rate, "peers": {library: theirs, "hand-written loop": 1.0}}


def host_result():
    layout = "transposed 1000 x 1000 floats"
    rows = [
        host_row("MPICH Version:      5.0.2", layout, "pack", 9.0, 5.0),
        host_row("MPICH Version:      5.0.2", layout, "unpack", 99.0, 55.0),
        host_row("Open MPI v5.0.11", layout, "pack", 8.0, 4.0),
        host_row("Open MPI v5.0.11", "a layout that is not shown", "pack", 8.0, 4.0),
    ]
    return {"benchmark": "host_pack", **ORIGIN, "rows": rows, "bars": []}


def gpu_result():
    face = {"table": "faces", "layout": next(iter(tables.GPU_FACES)), "direction": "pack"}
    large = {"table": "large", "layout": "contiguous", "direction": "pack", "bytes": 64 << 20}
    halo = {"table": "halo", "layout": tables.HALO}
    rows = [
        {
            "case": face,
            "value": 250,
            "unit": "GB/s",
            "peers": {"cudaMemcpy2DAsync": 230, "hand-written kernel": 260, "yaksa": 120},
        },
        {"case": large, "value": 2000, "unit": "GB/s", "bound": 2500, "peers": {"yaksa": 1000}},
        {"case": halo, "value": 11.5, "unit": "us", "peers": {"26 calls": 126.9}},
    ]
    return {"benchmark": "pack", **ORIGIN, "rows": rows, "bars": BARS}


def test_host_table_has_each_library_beside_gapless():
    assert tables.host_table([host_result()]).splitlines()[0] == (
        "| packed on the host (a machine, one core), GB/s | MPICH 5.0.2 | gapless | Open MPI 5.0.11 | gapless |"
    )
    assert "| 1000 x 1000 floats, transposed | 5.0 | **9.0** | 4.0 | **8.0** |" in tables.host_table([host_result()])


def test_host_table_of_each_machine():
    other = {**host_result(), "machine": {"name": "another machine"}}
    first, second = tables.host_table([host_result(), other]).split("\n\n")
    assert "(a machine, one core)" in first
    assert second == first.replace("a machine", "another machine")


def test_gpu_table_shows_libraries_and_no_yardsticks():
    assert tables.gpu_table([{**gpu_result(), "benchmark": tables.BESIDE_LIBRARIES}]).splitlines() == [
        "| faces of 256³ doubles, packed on the GPU (a machine), GB/s | cudaMemcpy2D or 3D | yaksa | gapless |",
        "| --- | --- | --- | --- |",
        "| first of 256 planes | 230 | 120 | **250** |",
    ]


def test_halo_sentence_compares_one_launch_with_a_call_a_region():
    assert "**11.5 us** by one launch; one call a region takes 127 us." in tables.halo_sentence([gpu_result()])


def test_programs_have_a_row_a_case_and_a_pair_of_columns_a_library():
    def row(library, ms, staging):
        case = {"library": library, "program": "P", "case": "a halo", "ranks": 2}
        return {"case": case, "value": ms, "unit": "ms", "peers": {"its own staging": staging}}

    result = gpu_result() | {"benchmark": "gpu_programs", "rows": [row("mpich", 1.5, 100.2), row("openmpi", 30, 20)]}
    assert tables.gpu_programs_table([result]).splitlines() == [
        "| programs on GPU memory (a machine), ms | MPICH, the program stages | gapless "
        "| Open MPI, the program stages | gapless |",
        "| --- | --- | --- | --- | --- |",
        "| P, a halo | 100 | **1.5** | **20** | 30 |",
    ]


def test_every_target_has_a_row_and_those_that_are_missed_come_first():
    missed, met = tables.targets_table([gpu_result()]).split("\n\n## Met: 1\n\n")
    assert missed.startswith("## Missed: 1\n\n| question |")
    assert missed.splitlines()[4:] == ["| pack: faster | >= 2 | 1.5 | a machine, abc |"]
    assert met.splitlines()[2:] == ["| pack: fast | >= 1 | 1.23 | a machine, abc |"]
    assert "1 of the 2 targets" in tables.readme([gpu_result()])


def test_large_packs_are_shown_with_their_fraction_of_the_bound():
    assert "| contiguous | pack | **2000** | 0.80 | 1000 |" in tables.gpu_classes_table([gpu_result()])


def test_peers_are_compared_over_all_rows_of_a_family():
    def row(rate, **peers):
        case = {"table": "large", "family": "2-D", "layout": "x"}
        return {"case": case, "value": rate, "unit": "GB/s", "peers": {"hand-written kernel": 1, **peers}}

    rows = [row(4, yaksa=1), row(1, yaksa=1), row(9)]
    result = {"benchmark": tables.BESIDE_LIBRARIES, **ORIGIN, "rows": rows, "bars": []}
    assert tables.peer_ratios_table([result]).splitlines() == [
        "| gapless, times the rate of | yaksa |",
        "| --- | --- |",
        "| 2-D | **2.00** (1.00 to 4, 2 rows) |",
    ]


ALL = [
    tables.host_table,
    tables.gpu_table,
    tables.halo_sentence,
    tables.gpu_classes_table,
    tables.peer_ratios_table,
    messages.gpu_messages_table,
    messages.mixed_messages_table,
    messages.gpu_halos_table,
    messages.host_messages_table,
    messages.endpoints_table,
    messages.rdma_table,
    tables.node_messages_table,
    costs.costs_table,
    costs.costs_sentences,
    gpu_latency.gpu_latency_table,
    tables.applications_table,
    messages.application_messages_table,
]


@pytest.mark.parametrize("table", ALL)
def test_what_was_not_measured_is_said(table):
    assert table([]) == tables.NOT_MEASURED


def test_what_the_readme_shows_is_in_the_committed_results(root):
    committed = results.load(root / "bench" / "results")
    layouts = {row["case"].get("layout") for result in committed for row in result["rows"]}
    assert layouts >= {*tables.HOST_LAYOUTS, *tables.GPU_FACES, tables.HALO}, json.dumps(sorted(map(str, layouts)))


def types_result():
    def row(uses, value):
        case = {"type": "vector of 100", "uses": uses, "library": "mpich", "blocks": 100}
        return {"case": case, "value": value, "unit": "us", "bound": 2.0, "peers": {}}

    analysis = {"case": {"type": "vector of 100", "analysis": True, "library": "mpich"}, "value": 1.0, "bound": 0}
    return {"benchmark": "types", **ORIGIN, "rows": [row(1, 2.1), row(10, 1.0), analysis], "bars": []}


def test_types_are_shown_by_the_number_of_uses():
    assert tables.types_table([]) == tables.NOT_MEASURED
    table = tables.types_table([types_result()])
    assert "| datatype | library | 1 use | 10 uses |" in table
    assert "| vector of 100 | MPICH | 1.05 | 0.50 |" in table


def of(benchmark, *rows):
    return {"benchmark": benchmark, **ORIGIN, "rows": list(rows), "bars": []}


def test_gpu_messages_are_shown_beside_every_way():
    case = {"library": "mpich", "memory": "gpu", "bytes": 65536}
    table = messages.gpu_messages_table(
        [
            of(
                "messages",
                {"case": {**case, "block": 0}, "value": 12.34, "unit": "us", "peers": {"oneshot": 12.3}},
                {"case": {**case, "block": 64}, "value": 1234.5, "unit": "us", "peers": {"direct": 9.876}},
                {"case": {**case, "memory": "host", "block": 64}, "value": 1, "unit": "us", "peers": {}},
            )
        ]
    )
    assert table.splitlines() == [
        "MPICH (a machine, commit abc), microseconds:",
        "",
        "| bytes | blocks of | gapless | oneshot | direct |",
        "| --- | --- | --- | --- | --- |",
        "| 64 KiB | contiguous | **12.3** | **12.3** |  |",
        "| 64 KiB | 64 B | 1234 |  | **9.88** |",
    ]


def test_host_messages_are_shown_by_library():
    rows = [
        {"case": {"library": mpi, "message": "halo"}, "value": 1.5, "unit": "us", "peers": {"native": 3.0}}
        for mpi in ("mpich", "openmpi")
    ]
    table = messages.host_messages_table([of("host_messages", *rows)])
    assert table.count("| halo | **1.50** | 3.00 |") == 2
    assert "Open MPI (a machine, commit abc)" in table


def node_message(message, library, value, native):
    return {"case": {"library": library, "message": message}, "value": value, "unit": "us", "peers": {"native": native}}


def test_messages_in_a_node_are_shown_by_kind():
    rows = [
        node_message("latency, columns, 1", "mpich", 2.0, 1.0),
        node_message("latency, columns, 2", "mpich", 1.0, 8.0),
        node_message("latency, plain, 8", "openmpi", 1.0, 0.9),
    ]
    lines = tables.node_messages_table([of("host_messages", *rows)]).splitlines()
    assert lines[0] == "| messages in a node (a machine), times the speed of the library alone | MPICH | Open MPI |"
    assert "| columns, one at a time | 2.00 (0.50 to 8.00) |  |" in lines
    assert "| contiguous, one at a time |  | 0.90 (0.90 to 0.90) |" in lines


def application_message(pattern, library, value, by_hand, by_library):
    case = {"library": library, "pattern": pattern, "bytes": 480}
    peers = {"contiguous": 0.5, "packed by hand": by_hand, "the library's datatypes": by_library}
    return {"case": case, "value": value, "unit": "us", "peers": peers}


def test_messages_of_applications_are_compared_with_packing_by_hand():
    rows = [
        application_message("WRF_x_vec", "mpich", 1.0, 2.0, 4.0),
        application_message("WRF_y_sa", "mpich", 1.0, 8.0, 4.0),
        application_message("MILC_su3_zd", "openmpi", 2.0, 1.0, 1.0),
    ]
    result = of("ddtbench", *rows)
    lines = tables.applications_table([result]).splitlines()
    assert lines[0] == (
        "| datatypes of applications (a machine), times the speed of packing by hand "
        "| MPICH | gapless | Open MPI | gapless |"
    )
    assert "| WRF | 1.00 (0.50 to 2.00) | **4.00 (2.00 to 8.00)** |  |  |" in lines
    assert "| MILC |  |  | **1.00 (1.00 to 1.00)** | 0.50 (0.50 to 0.50) |" in lines
    assert "| `WRF_x_vec` | 480 | **1.00** | 0.50 | 2.00 | 4.00 |" in messages.application_messages_table([result])


def test_what_reads_as_the_best_of_a_row_is_bold():
    assert tables.with_best_in_bold(["1.0", "", "1.0", "2.0"], [1.01, None, 1.04, 2.0]) == [
        "**1.0**",
        "",
        "**1.0**",
        "2.0",
    ]
    assert tables.with_best_in_bold(["3", "4"], [3, 4], max) == ["3", "**4**"]
    assert tables.with_best_in_bold([""], [None]) == [""]


def test_a_copy_wins_no_row():
    case = {"library": "x", "memory": "gpu", "bytes": 1024, "block": 0}
    row = {"case": case, "value": 20.0, "unit": "us", "peers": {"by hand": 10.0, "copy": 5.0}}
    assert "| 1 KiB | contiguous | 20.0 | **10.0** | 5.00 |" in messages.gpu_messages_table([of("messages", row)])
    large = {"table": "large", "layout": "x", "direction": "pack", "bytes": 64 << 20}
    peers = {"copy of the same traffic": 9, "yaksa": 3}
    row = {"case": large, "value": 4, "unit": "GB/s", "bound": 8, "peers": peers}
    table = tables.gpu_classes_table([of("pack", row)])
    assert "| layout |  | gapless | of the bound | yaksa | copy of the same traffic |" in table
    assert "| x | pack | **4** | 0.50 | 3 | 9 |" in table


def test_forms_of_halos_without_a_target_are_compared_with_the_best_by_hand():
    def row(form, value):
        case = {"library": "mpich", "form": form, "points": 64, "width": 1}
        return {"case": case, "value": value, "unit": "us", "peers": {"a": 20.0, "b": 10.0}}

    result = of("halo", row("Startall", 5.0), row("Startall", 15.0), row("Isend", 40.0))
    result["bars"] = [{"name": "halos by Isend, mpich", "asks": "", "figure": "", "holds": False}]
    assert messages.gpu_halos_table([result]).endswith("times the best by hand: *Startall* 0.5 to 1.5.")


def overhead(call, process, value, memory="stack", library="mpich"):
    case = {"call": call, "memory": memory, "library": library, "process": process}
    return {"case": case, "value": value, "unit": "ns more a call", "bound": 0, "peers": {}}


def test_what_it_costs_where_it_does_not_help():
    made = {"case": {"create, commit, free": "vector", "library": "mpich"}, "value": 105, "bound": 100, "peers": {}}
    rows = [
        overhead("MPI_Send", costs.WITHOUT_GPU, 2.44),
        overhead("MPI_Pack", costs.WITHOUT_GPU, 6),
        overhead("MPI_Recv of 1 KiB", costs.WITHOUT_GPU, 16.4),
        overhead("MPI_Pack", costs.WITH_GPU, 18),
        overhead("MPI_Pack", costs.WITH_GPU, 274, memory=costs.OWN_PAGES),
        overhead("MPI_Recv of 1 KiB", costs.WITH_GPU, 999),
        made,
    ]
    loaded = [of("mpi_overhead", *rows), of("host_messages", node_message("latency, plain, 8", "mpich", 1.0, 0.9))]
    table = costs.costs_table(loaded)
    assert "| a call, no GPU in the machine | 2.4 to 6.0 ns |  |" in table
    assert "pages of its own (large arrays) | 274 ns |  |" in table
    assert "| a datatype made and freed | 1.05 to 1.05 times |  |" in table
    words = " ".join(costs.costs_sentences(loaded).split())
    assert "takes 2.4 to 6.0 ns more, and a receive of 1 KiB 16 ns more." in words
    assert "takes 18 ns more, and up to 274 ns where" in words
    assert "that receive takes up to 999 ns more." in words and "does not use" not in words
    assert words.endswith("reach, of the library's speed, one at a time 0.90 (0.90 at worst).")
    starts = [
        {"case": {"library": "mpich", "ranks": 4 * ranks, "moment": moment}, "value": ranks, "unit": unit, "bound": 2}
        for moment, unit in (("MPI_Init", "ms"), ("first messages", "MiB"), ("first messages", "ms"))
        for ranks in (1, 5)
    ]
    words = " ".join(costs.costs_sentences([*loaded, of("starts", *starts)]).split())
    assert "takes 0.0 to 3.0 ms more of processor time to the end" in words
    assert "0.0 to 3.0 MiB more of memory" in words and "of a job of up to 20." in words
    beside = [overhead("MPI_Pack", costs.BESIDE_GPU, 40), overhead("MPI_Recv of 1 KiB", costs.BESIDE_GPU, 51)]
    words = " ".join(costs.costs_sentences([*loaded, of("mpi_overhead", *beside)]).split())
    assert "that the process does not use, a call takes 40 ns more, and that receive 51 ns." in words


def test_gpu_calls_are_shown_beside_an_empty_kernel():
    empty = {gpu_latency.EMPTY_KERNEL: 10.0}
    case = {"table": "latency", "layout": "x", "resident": "no", "bytes": 1024}
    halo = {"table": "halo", "layout": "y", "largest face": "4096 B"}
    rows = [{"case": case, "value": value, "unit": "us", "peers": empty} for value in (9.0, 9.5)]
    rows += [{"case": halo, "value": 11.0, "unit": "us", "peers": {**empty, "26 calls": 180}}]
    table = gpu_latency.gpu_latency_table([of("pack", *rows)])
    assert "| `MPI_Pack`, `MPI_Unpack` of GPU memory | 0.90–0.95 |" in table
    assert "| faces up to" not in table and "| one batch / E | 1.10 |" in table
    assert "| 26 calls / E | 18 |" in table


def test_numbers_of_endpoints_have_no_exponents():
    case = {"library": "mpich", "what": "allreduce", "way": "endpoints", "ranks": 2, "size": 8}
    row = {"case": case, "value": 1.02e-3, "unit": "s", "peers": {"processes": 2.5e-4}}
    assert "| us | 1020 | **250** |" in messages.endpoints_table([of("endpoints", row)])


def test_endpoints_are_shown_in_their_units():
    case = {"library": "mpich", "what": "latency", "way": "inside", "ranks": 1, "size": 8}
    row = {"case": case, "value": 1.5e-7, "unit": "s", "peers": {"processes": 2.5e-7}}
    table = messages.endpoints_table([of("endpoints", row)])
    assert "| latency, inside | 1 | 8 | us | **0.15** | 0.25 |" in table


def test_schemes_by_a_fabric_stand_with_their_operations_and_copies():
    def row(measure, scheme, columns, value, variant="usual"):
        case = {"fabric": "tcp", "variant": variant, "measure": measure, "scheme": scheme, "columns": columns}
        return {"case": case, "value": value, "posts": 32.0, "copies": 1.0, "peers": {}}

    rows = [row("latency", "gather-write", 16, 299.25), row("bandwidth", "gather-write", 16, 7.0)]
    rows += [
        row("alltoall", scheme, 2048, ms * 1000, "struct, 8 ranks") for scheme, ms in (("library", 9), ("chosen", 3))
    ]
    table = messages.rdma_table([of("rdma", *rows)])
    assert "| 16 |  | 299 (32, 1) |" in table
    assert "| ints of the last block | library | chosen |" in table
    assert "| 2048 | 9.00 | 3.00 |" in table


def test_endpoints_have_a_table_for_each_library_and_not_all_sizes():
    case = {"what": "latency", "way": "inside", "ranks": 1}
    rows = [
        {"case": {**case, "library": library, "size": size}, "value": 1e-6, "unit": "s", "peers": {}}
        for library in ("mpich", "openmpi")
        for size in (8, 16384)
    ]
    mpich, openmpi = messages.endpoints_table([of("endpoints", *rows)]).split("\n\nOpen MPI ")
    assert mpich.startswith("MPICH (a machine, commit abc):") and "| latency, inside | 1 | 8 |" in mpich
    assert "16384" not in mpich + openmpi


def test_every_message_that_is_slower_than_the_library_is_listed():
    rows = [
        node_message("latency, columns, 1", "mpich", 2.0, 1.0),
        node_message("latency, columns, 2", "mpich", 1.0, 0.966),
        node_message("halo, Isend and Irecv, 64^3, radius 1", "mpich", 1.0, 0.9),
        node_message("latency, columns, 4", "mpich", 1.0, 0.97),
        node_message("latency, columns, 1", "openmpi", 1.0, 8.0),
    ]
    lines = losses.lost_messages_table([of("host_messages", *rows)]).splitlines()
    assert lines[2:] == [
        "| a machine | MPICH | latency, columns: 0.50 (1), 0.966 (2); halo, Isend and Irecv: 0.90 (64^3, radius 1) |",
        "| a machine | Open MPI | none |",
    ]
    assert losses.lost_messages_table([]) == losses.NOT_MEASURED


def test_messages_and_halos_of_gpu_memory_are_told_over_their_bounds():
    def message(library, size, block, value, **peers):
        case = {"library": library, "memory": "gpu", "bytes": size, "block": block}
        return {"case": case, "value": value, "peers": peers}

    def halo(form, points, value):
        peers = {losses.BY_HAND: 10.0, losses.THROUGH_HOST: 20.0}
        return {
            "case": {"library": "mpich", "form": form, "points": points, "width": 1},
            "value": value,
            "peers": peers,
        }

    rows = [
        message(losses.AWARE, 16 << 20, 0, 50.0, **{losses.ALONE: 50.0}),
        message(losses.AWARE, 1024, 0, 11.0, **{losses.ALONE: 10.0}),
        message("mpich", 16 << 20, 8, 100.0),
        message("mpich", 1024, 128, 13.0, ready=7.0),
        message("mpich", 2048, 128, 99.0, ready=7.0),
    ]
    halos = [
        halo(losses.TO_NEIGHBORS, 64, 5.0),
        halo(losses.BY_REQUESTS, 64, 30.0),
        halo(losses.BY_REQUESTS, 256, 99.0),
    ]
    words = " ".join(losses.gpu_sentences([of("messages", *rows), of("halo", *halos)]).split())
    assert "contiguous messages and blocks of 128 bytes and more 1.00, of 8 and 16 bytes 2.00." in words
    assert "more: 1.10 to 1.30, 3.0 us more at most." in words and "up to 16 KiB: 0.70." in words
    assert (
        "takes 0.5 times as long" in words and "take 3.0 times as long as that `MPI_Alltoallv`, and 1.5 times" in words
    )
    assert losses.gpu_messages_sentences([]) == losses.gpu_halos_sentences([]) == losses.NOT_MEASURED
