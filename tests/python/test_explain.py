"""`gapless explain` against a count of bytes and cache lines done here, by hand."""

import json
import re

import pytest

from conftest import ROOT, is_mistake
from gapless import locate
from gapless.command.explain import FORMS, GRAMMAR, LEGEND, mistake, tree


def lines_touched(offsets) -> int:
    return len({offset // 64 for offset in offsets})


def explained(gapless, *words) -> dict:
    done = gapless("explain", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("count", [1, 2])
def test_a_vector(gapless, count):
    f = explained(gapless, "vector(1024, 1, 4, int)", "--count", count)
    extent = (1023 * 4 + 1) * 4
    offsets = [r * extent + i * 16 + b for r in range(count) for i in range(1024) for b in range(4)]
    assert (f["size"], f["extent"], f["blocks"], f["alignment"]) == (4096, extent, 1024, 4)
    assert f["packed_bytes"] == len(offsets)
    assert f["lines_touched"] == lines_touched(offsets)
    assert f["injective"] is True


def test_a_subarray_keeps_the_offset_of_a_dimension_of_one(gapless):
    f = explained(gapless, "subarray([8,8], [1,4], [3,2], c, double)")
    assert (f["size"], f["extent"], f["true_lower_bound"], f["true_extent"]) == (32, 512, (3 * 8 + 2) * 8, 32)
    assert f["blocks"] == 1


def test_the_way_of_messages(gapless):
    small_blocks = explained(gapless, "vector(1000, 8, 64, byte)")["messages"]
    assert set(small_blocks) == {"host, MPICH", "host, Open MPI", "GPU"}
    host, gpu = small_blocks["host, MPICH"]["sender"], small_blocks["GPU"]["receiver"]
    assert host["chosen"] == "packed" and host["ns"]["packed"] < host["ns"]["native"] == 0
    assert gpu["chosen"] == min(gpu["ns"], key=gpu["ns"].get) and set(gpu["ns"]) == {"oneshot", "staged", "pipelined"}
    assert explained(gapless, "int")["messages"]["host, MPICH"]["sender"] == {"chosen": "native", "ns": {"native": 0}}
    assert explained(gapless, "vector(0, 1, 4, int)")["messages"]["GPU"]["sender"] == {"chosen": None, "ns": {}}


KERNELS = [  # type, regime and word to pack and to unpack
    ("vector(16, 4096, 8192, byte)", ("nest", 16), ("nest", 16)),
    ("vector(100000, 7, 64, byte)", ("shifted", 1), ("sectors", 1)),
    ("contiguous(100, int)", ("contiguous", 16), ("contiguous", 16)),
    ("hvector(4, 1, 2, int)", ("nest", 2), ("ordered", 2)),
]


@pytest.mark.parametrize("text, packs, unpacks", KERNELS)
def test_the_kernels_of_a_gpu(gapless, text, packs, unpacks):
    if locate.find(locate.PLUGIN) is None:
        pytest.skip("the CUDA plugin is not built")
    found = explained(gapless, text)["kernels"]
    for direction, expected in ("pack", packs), ("unpack", unpacks):
        assert (found[direction]["regime"], found[direction]["word_bytes"]) == expected, direction
        assert found[direction]["reason"] in gapless("explain", text).stdout
    assert explained(gapless, "vector(0, 1, 4, int)")["kernels"] == {}


@pytest.mark.parametrize("forced", ["tree", "segments"])
def test_a_regime_that_is_forced_is_the_one_shown(gapless, forced):
    if locate.find(locate.PLUGIN) is None:
        pytest.skip("the CUDA plugin is not built")
    text = "indexed([3,5,1,9], [0,9,20,40], int)"
    done = gapless("explain", "--json", text, GAPLESS_GPU_REGIME=forced)
    assert json.loads(done.stdout)["kernels"]["pack"]["regime"] == forced
    assert explained(gapless, text)["kernels"]["pack"]["regime"] == "nest"


def test_the_way_by_a_fabric(gapless):
    long_blocks = explained(gapless, "vector(8, 131072, 262144, byte)")["fabric"]
    # 8 operations of 5 us each and 0.4 ns a byte: nothing is copied.
    assert long_blocks["chosen"] == "multi-write" and long_blocks["ns"]["multi-write"] == 8 * 5000 + round(0.4 * 2**20)
    assert long_blocks["ns"]["multi-write"] == min(long_blocks["ns"].values()) and len(long_blocks["ns"]) == 5
    assert explained(gapless, "vector(256, 64, 128, byte)")["fabric"]["chosen"] == "packed"
    assert explained(gapless, "vector(0, 1, 4, int)")["fabric"] == {"chosen": None, "ns": {}}
    assert "by a fabric" in gapless("explain", "vector(8, 131072, 262144, byte)").stdout


@pytest.mark.parametrize("text", ["contiguous(1048576, byte)", "vector(64, 128, 256, byte)"])
def test_contiguous_and_short_messages_do_not_go_by_a_fabric(gapless, text):
    assert explained(gapless, text)["fabric"] == {"chosen": None, "ns": {}}
    assert "not by the fabric" in gapless("explain", text).stdout


def in_node(gapless, text, **changes) -> dict:
    done = gapless("explain", "--json", text, **changes)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["in_node"]


def test_the_way_to_a_process_of_the_same_node(gapless):
    f = in_node(gapless, "vector(16384, 1, 4, int)")
    assert set(f) == {
        "host, MPICH, same node",
        "host, Open MPI, same node",
        "GPU to another GPU",
        "GPU shared by both",
    }
    # The sums of src/model/host.hpp and src/model/gpu.hpp, by hand: 64 KiB in 16384 blocks.
    host = f["host, MPICH, same node"]
    packed, slots = -round(16384 * 150 - 0.025 * 65536), -round(150 + 16384 * 150 + 0.03 * 65536)
    assert host["ns"] == {"native": 0, "packed": packed, "slots": slots}
    assert host["chosen"] == "slots"
    other = f["GPU to another GPU"]
    assert other["chosen"] == "direct" and other["ns"]["direct"] == round(2 * 6800 + 65536 / 500 + 65536 / 350)
    assert other["ns"]["direct"] == min(other["ns"].values()) and set(other["ns"]) > {"oneshot", "staged"}
    # Two processes take turns on one GPU: 136 us.
    shared = f["GPU shared by both"]
    assert shared["ns"]["direct"] == round(2 * 6800 + 136_000 + 2 * 65536 / 500) and shared["chosen"] == "oneshot"
    text = gapless("explain", "vector(16384, 1, 4, int)").stdout
    assert "slots, 2460 us sooner than native (packed 2456 us sooner)" in text
    assert "direct 13.9 us (oneshot " in text


def test_what_no_slots_are_for(gapless):
    for text in ("vector(100, 1, 4, int)", "contiguous(16384, int)", "vector(524288, 1, 2, int)"):
        host = in_node(gapless, text)["host, MPICH, same node"]
        assert "slots" not in host["ns"] and host["chosen"] != "slots", text
    assert "direct" not in in_node(gapless, "vector(100, 1, 4, int)")["GPU to another GPU"]["ns"]
    for found in in_node(gapless, "vector(0, 1, 4, int)").values():
        assert found == {"chosen": None, "ns": {}}
    without = in_node(gapless, "vector(16384, 1, 4, int)", GAPLESS_HEADERS="0")
    assert without["host, MPICH, same node"]["chosen"] == "packed"
    assert without["GPU to another GPU"]["chosen"] == "oneshot"
    forced = in_node(gapless, "vector(16384, 1, 4, int)", GAPLESS_SCHEME="slots")
    assert forced["host, Open MPI, same node"]["chosen"] == "slots"


def test_what_is_too_long_for_slots_goes_through_a_ring(gapless):
    f = in_node(gapless, "vector(524288, 1, 2, int)")
    # The sums of src/model/host.hpp by hand: 2 MiB in 524288 blocks.
    host = f["host, MPICH, same node"]
    assert host["chosen"] == "direct" and host["ns"]["direct"] == -round(524288 * 150 + 0.04 * 2097152)
    assert f["host, Open MPI, same node"]["chosen"] == "direct"
    text = gapless("explain", "vector(524288, 1, 2, int)").stdout
    assert "direct, 78727 us sooner than native (packed 78591 us sooner)" in text
    # Beyond 83 bytes a block Open MPI's own way is sooner.
    assert in_node(gapless, "vector(16384, 32, 64, int)")["host, Open MPI, same node"]["chosen"] == "native"


def test_a_profile_decides_for_slots_and_direct(gapless, tmp_path):
    def table(memory, pair, scheme, ns):
        axes = {"bytes": [4096], "block": [4], "row_blocks": [2]}
        return {"memory": memory, "pair": pair, "scheme": scheme, "quantity": "message", **axes, "ns": [[[ns]]]}

    def explained_by(slots, direct):
        tables = [
            table("host", "same node", "native", 9000),
            table("host", "same node", "packed", 5000),
            table("host", "same node", "slots", slots),
            *(table("gpu", "same GPU", scheme, 30000) for scheme in ("oneshot", "staged", "pipelined")),
            table("gpu", "same GPU", "direct", direct),
        ]
        path = tmp_path / "profile.json"
        path.write_text(json.dumps({"gapless_profile": 1, "library": "MPICH 9", "gpu": None, "tables": tables}))
        return in_node(gapless, "vector(1024, 1, 2, int)", GAPLESS_PROFILE=str(path))

    f = explained_by(3000, 20000)
    assert f["host, MPICH, same node"] == {"chosen": "slots", "ns": {"native": 0, "packed": -2000, "slots": -3000}}
    shared = f["GPU shared by both"]
    assert shared["chosen"] == "direct" and shared["ns"]["direct"] == 20000 and shared["ns"]["oneshot"] == 30000
    f = explained_by(7000, 40000)
    assert f["host, MPICH, same node"] == {"chosen": "packed", "ns": {"native": 0, "packed": -2000, "slots": -1000}}
    assert f["GPU shared by both"]["chosen"] == "oneshot"


def test_a_forced_way_is_shown(gapless):
    done = gapless("explain", "vector(8, 1048576, 2097152, byte)", GAPLESS_SCHEME="packed")
    assert "later than native" in done.stdout
    assert "GPU" in done.stdout and "oneshot" in done.stdout


def test_a_profile_of_a_library_decides_for_that_library(gapless, tmp_path):
    def table(scheme, ns):
        axes = {"bytes": [64], "block": [4], "row_blocks": [2]}
        named = {"memory": "host", "pair": "same node", "scheme": scheme, "quantity": "message"}
        return {**named, **axes, "ns": [[[ns]]]}

    path = tmp_path / "profile.json"
    tables = [table("native", 100), table("packed", 300)]
    path.write_text(json.dumps({"gapless_profile": 1, "library": "MPICH 9", "gpu": None, "tables": tables}))
    with_profile, without = (
        json.loads(gapless("explain", "--json", "vector(16, 1, 2, int)", GAPLESS_PROFILE=named).stdout)
        for named in (str(path), "built-in")
    )
    assert with_profile["messages"]["host, MPICH"]["sender"]["ns"] == {"native": 0, "packed": 100}
    assert with_profile["messages"]["host, MPICH"]["sender"]["chosen"] == "native"
    assert with_profile["messages"]["host, Open MPI"] == without["messages"]["host, Open MPI"]
    assert with_profile["profile"] == f"{path} for MPICH 9, else built-in" and without["profile"] == "built-in"
    unnamed = gapless("explain", "int", GAPLESS_PROFILE=None).stdout
    assert "built-in (GAPLESS_PROFILE=FILE" in unnamed
    path.write_text("{")
    assert "is ignored: it is not JSON" in gapless("explain", "int", GAPLESS_PROFILE=str(path)).stdout


def test_an_overlapping_type_is_not_unpacked_in_parallel(gapless):
    assert explained(gapless, "vector(4, 2, 1, int)")["injective"] is False


def test_an_empty_type(gapless):
    f = explained(gapless, "vector(0, 1, 4, int)")
    assert (f["size"], f["packed_bytes"], f["lines_touched"]) == (0, 0, 0)


def test_the_text_names_every_figure(gapless):
    done = gapless("explain", "struct([1,2], [0,8], [double, int])")
    assert done.returncode == 0, done.stderr
    for word in ("struct [1,2] [0,8]", "  double", "canonical", "size", "blocks", "alignment", "unpack", "traffic"):
        assert word in done.stdout


@pytest.mark.parametrize("text", ["", "vector(1, 2", "vector(1,1,1,nonsense)", "vector(-1, 1, 1, int)", "int)"])
def test_a_wrong_type_is_one_line(gapless, text):
    assert is_mistake(gapless("explain", text), 2)


@pytest.mark.parametrize(
    "text, column, why",
    [
        ("vector(-1, 1, 1, int)", 8, "negative count"),
        ("contiguous(2, vector(3, -1, 1, int))", 25, "negative block length"),
        ("indexed([1, 2, -3], [0, 4, 8], int)", 16, "negative block length"),
        ("subarray([8,8], [1,9], [0,0], c, int)", 20, "subarray: part outside the array"),
    ],
)
def test_a_refused_argument_is_pointed_at(gapless, text, column, why):
    done = gapless("explain", text)
    assert is_mistake(done, 2)
    assert done.stderr.startswith(f"gapless: column {column} of {text}: {why}; it is ")


def test_a_wrong_type_is_shown_with_what_its_constructor_is_given(gapless):
    done = gapless("explain", "vector(3)")
    assert is_mistake(done, 2)
    assert done.stderr == (
        "gapless: column 9 of vector(3): expected ','; it is vector(count, block_length, stride, TYPE)\n"
    )
    assert mistake("dup(vector(1, 2, 3, int)", "column 25: expected ')'").endswith(": expected ')'; it is dup(TYPE)")
    assert mistake("", "column 1: expected a datatype") == "column 1 of an empty text: expected a datatype"
    assert mistake("a" * 99, "column 80: x") == f"column 80 of …{'a' * 50}: x"
    assert mistake("int", "no room") == "no room"
    assert len(FORMS) == GRAMMAR.count("\n  ") - 1 and FORMS["darray"].endswith("TYPE)")  # darray has two lines


def test_the_help_says_what_each_line_of_a_memory_is(gapless):
    assert LEGEND in gapless("explain", "--help").stdout
    f = explained(gapless, "int")
    for line in (*f["messages"], *f["in_node"], "host, by a fabric"):
        assert line.replace("Open MPI, same", "MPICH, same") in LEGEND


@pytest.mark.parametrize(
    "text, expected",
    [
        ("int", ["int"]),
        ("vector(3, 1, -4, int)", ["vector 3 1 -4", "  int"]),
        ("resized(indexed([3,1], [0,8], float), 0, 64)", ["resized 0 64", "  indexed [3,1] [0,8]", "    float"]),
        ("subarray([4],[2],[1], c, double)", ["subarray [4] [2] [1] c", "  double"]),
        (
            "struct([1,1],[0,8],[double, vector(2,1,2,int)])",
            ["struct [1,1] [0,8]", "  double", "  vector 2 1 2", "    int"],
        ),
        (
            "darray(4, 1, [8,8], [block,cyclic], [default,2], [2,2], c, int)",
            ["darray 4 1 [8,8] [block,cyclic] [default,2] [2,2] c", "  int"],
        ),
    ],
)
def test_the_tree(text, expected):
    assert tree(text) == expected


def test_the_help_has_every_constructor(gapless):
    parser = (ROOT / "src/layout/text/text.cpp").read_text()
    constructors = re.findall(r'\{"(\w+)", &Parser::parse_', parser)
    assert set(re.findall(r"^  (\w+)\(", GRAMMAR, re.MULTILINE)) == set(constructors)
    assert GRAMMAR in gapless("explain", "--help").stdout


@pytest.mark.parametrize("text", re.findall(r'"(.+?)"', GRAMMAR))
def test_the_examples_of_the_help_are_right(gapless, text):
    assert explained(gapless, text)["size"] > 0
