"""`gapless calibrate` with every MPI at hand: the profile it writes, what it goes on with, and its mistakes.

The times themselves are not judged; tests/model has what is made of them.
"""

import ctypes
import json
import os
import re

import pytest

from conftest import LIBRARIES, PREFIXES, for_each_mpi, is_mistake
from gapless.calibration import sampling, worker

# Of MPICH's two ABIs one: the library is the same.
for_each_library = pytest.mark.parametrize("kind, compiler, abi, name", [row for row in LIBRARIES if row[2] != "abi"])
LAUNCHERS = {"mpich": "mpiexec -n 2", "openmpi": "mpirun --oversubscribe -n 2"}


@pytest.fixture
def calibrate(gapless, tmp_path):
    """calibrate(kind, *words) -> CompletedProcess, with two seconds and the profile tmp_path/profile.json."""

    def call(kind, *words, **changes):
        changes |= {"PATH": f"{PREFIXES[kind]}/bin:{os.environ['PATH']}", "OMPI_MCA_mpi_yield_when_idle": "1"}
        output = ("--output", tmp_path / "profile.json", "--seconds", 2)
        return gapless("calibrate", "--mpirun", LAUNCHERS[kind], *output, *words, **changes)

    return call


@pytest.fixture
def must_calibrate(calibrate):
    """The same, which must succeed; else the launcher's words say why it did not."""

    def call(kind):
        done = calibrate(kind)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    return call


def times(value):
    if isinstance(value, list):
        for inner in value:
            yield from times(inner)
    elif value is not None:
        yield value


@for_each_library
def test_a_profile_is_written_and_used(calibrate, gapless, hello, tmp_path, kind, compiler, abi, name):
    done = calibrate(kind)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "profile.json"
    profile = json.loads(path.read_text())
    assert re.fullmatch(rf"{name} \d+\.\d+\S*", profile["library"])
    assert profile["gapless_profile"] == 1
    tables = {(t["memory"], t["pair"], t["scheme"], t["quantity"]): t for t in profile["tables"]}
    for scheme in ("native", "packed"):
        for quantity in ("message", "pack", "unpack"):
            found = list(times(tables["host", "same node", scheme, quantity]["ns"]))
            assert len(found) >= 5 and min(found) > 0
    # Slots carry 1 KiB to 1 MiB, and pack as packed does.
    slots = tables["host", "same node", "slots", "message"]
    assert min(times(slots["ns"])) > 0 and len(slots["ns"]) == len(slots["bytes"])
    assert slots["bytes"] == [size for size in worker.axes(2)[0] if 1024 <= size <= 1 << 20]
    assert ("host", "same node", "slots", "pack") not in tables
    assert not path.with_name("profile.json.part").exists()
    # A program takes it without a word, and one that is damaged with one line.
    program = hello(kind, compiler)
    settings = {"GAPLESS_PROFILE": str(path), "GAPLESS_SCHEME": None}
    done = gapless("run", program, **settings)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for text, why in (
        (path.read_text()[:-20], "it is not JSON"),
        (path.read_text().replace('"library": "', '"library": "Other '), "it is of Other "),
        (path.read_text().replace('"gapless_profile": 1', '"gapless_profile": 7'), "its version is 7, and not 1"),
    ):
        path.write_text(text)
        done = gapless("run", program, **settings)
        assert (done.returncode, done.stdout) == (0, "")
        assert (
            done.stderr.startswith(f"gapless: GAPLESS_PROFILE: {path}: ignored; {why}") and done.stderr.count("\n") == 1
        )
        path.write_text(json.dumps(profile))


@for_each_mpi
def test_a_profile_among_the_users_configuration_is_found(gapless, hello, tmp_path, kind, compiler, abi, name):
    version = {"MPICH": "mpich-5", "Open MPI": "open-mpi-5"}[name]
    folder = tmp_path / "gapless"
    folder.mkdir()
    program = hello(kind, compiler)
    settings = {"XDG_CONFIG_HOME": str(tmp_path), "GAPLESS_PROFILE": None}
    assert gapless("run", program, **settings).stderr == ""
    shown = gapless("info", "--json", program, **settings).stdout
    assert json.loads(shown)["program"]["profile"] == "built-in"
    library = json.loads(shown)["program"]["library"]
    path = folder / (library.lower().replace(" ", "-") + ".json")
    assert path.name.startswith(version)
    path.write_text("{}")
    assert gapless("run", program, **settings).stderr.startswith(f"gapless: {path}: ignored; it has no ")
    assert gapless("run", program, **settings, **{"GAPLESS_MODEL": "fixed"}).returncode == 0
    shown = json.loads(gapless("info", "--json", program, **settings).stdout)["program"]["profile"]
    assert shown.startswith(f"built-in; {path} is ignored: it has no ")
    settings["GAPLESS_PROFILE"] = "built-in"
    assert gapless("run", program, **settings).stderr == ""


@for_each_library
def test_what_was_measured_before_is_not_measured_again(must_calibrate, tmp_path, kind, compiler, abi, name):
    must_calibrate(kind)
    profile = json.loads((tmp_path / "profile.json").read_text())
    grid = worker.axes(2)
    cells = worker.cells([("host", "same node", 1)], grid)
    kept = {worker.key_of(cell): 12345.0 for cell in cells[:-3]}
    kept["host|same node|packed|nonsense|1|1|1"] = "x"
    identity = {"library": profile["library"], "gpu": profile["gpu"]}
    unfinished = tmp_path / "profile.json.part"
    unfinished.write_text(json.dumps({"version": 1, "identity": identity, "cells": kept}))
    must_calibrate(kind)
    again = json.loads((tmp_path / "profile.json").read_text())
    assert {t for table in again["tables"] for t in times(table["ns"])} > {12345.0}
    assert not unfinished.exists()
    # What is of another library, or no file of ours, is measured anew.
    for text in ("{}", json.dumps({"version": 1, "identity": {"library": "other", "gpu": None}, "cells": kept})):
        unfinished.write_text(text)
        must_calibrate(kind)
        again = json.loads((tmp_path / "profile.json").read_text())
        assert 12345.0 not in {t for table in again["tables"] for t in times(table["ns"])}


@for_each_library
def test_one_process_cannot_measure(calibrate, tmp_path, kind, compiler, abi, name):
    done = calibrate(kind, "--mpirun", LAUNCHERS[kind].replace("-n 2", "-n 1"))
    assert done.returncode == 1 and "a calibration needs two processes" in done.stderr
    assert "goes on" not in done.stderr
    assert not (tmp_path / "profile.json").exists()
    (tmp_path / "profile.json.part").write_text("{}")
    assert "goes on" in calibrate(kind, "--mpirun", LAUNCHERS[kind].replace("-n 2", "-n 1")).stderr


def test_mistakes(gapless, tmp_path):
    assert is_mistake(gapless("calibrate", "--mpirun", ""), 2)
    assert is_mistake(gapless("calibrate", "--mpirun", "mpirun 'n"), 2)
    assert is_mistake(gapless("calibrate", "--mpirun", "no-such-launcher -n 2"), 127)
    assert is_mistake(gapless("calibrate", "--mpirun", "true", "--library", tmp_path / "libmpi.so"), 2)
    assert is_mistake(gapless("calibrate", "--seconds", "0"), 2)


@for_each_library
def test_a_directory_cannot_be_the_profile(calibrate, tmp_path, kind, compiler, abi, name):
    assert is_mistake(calibrate(kind, "--output", tmp_path), 2)


def test_the_interval_of_a_median():
    assert sampling.interval([3, 1, 2]) == (1, 3)
    low, high = sampling.interval(list(range(100)))
    assert (low, high) == (40, 60)
    assert sampling.is_tight([100.0] * 5) and not sampling.is_tight([100.0] * 4)
    assert not sampling.is_tight([100.0, 90.0, 110.0, 80.0, 120.0])


def test_sampling_ends_when_the_interval_is_tight_or_the_time_is_over():
    calls, now = [], [0.0]

    def sample(ns):
        def measure(times):
            calls.append(times)
            now[0] += 1
            return ns(len(calls))

        return measure

    assert sampling.median_of(sample(lambda n: 1000.0), 1000, lambda: now[0]) == 1000
    assert calls == [1] + [200] * sampling.FEWEST
    calls.clear()
    assert sampling.median_of(sample(lambda n: 1000.0 + 500 * (n % 2)), 1e9, lambda: now[0]) > 0
    assert len(calls) == 1 + sampling.MOST
    calls.clear()
    assert sampling.median_of(sample(lambda n: 1e9 + n * 1e8), 10, lambda: now[0]) > 0
    assert len(calls) <= 12
    calls.clear()
    assert sampling.median_of(sample(lambda n: 0.0), 10, lambda: now[0]) is None
    assert calls == [1]
    calls.clear()
    # What cannot be had any more has no time either.
    assert sampling.median_of(sample(lambda n: 1000.0 if n < 3 else 0.0), 10, lambda: now[0]) is None
    assert len(calls) == 3


def test_pairs_of_processes():
    def process(node, gpu=None):
        return {"node": node, "gpu": gpu}

    assert worker.pairs([process("a"), process("a"), process("a")]) == [("host", "same node", 1)]
    nodes = [process("a", "x"), process("b", "x"), process("a", "y"), process("a", "x")]
    assert worker.pairs(nodes) == [
        ("host", "other node", 1),
        ("gpu", "other node", 1),
        ("host", "same node", 2),
        ("gpu", "peer GPU", 2),
        ("gpu", "same GPU", 3),
    ]


def test_every_shape_of_the_grid_has_its_rows():
    grid = worker.axes(1000)
    cells = worker.cells([("host", "same node", 1), ("gpu", "peer GPU", 1)], grid)
    assert len(set(cells)) == len(cells)
    for memory, _, scheme, quantity, size, block, row_blocks in cells:
        assert (scheme in ("native", "packed", "slots")) == (memory == "host")
        assert quantity == "move" or size // block >= max(row_blocks, 2)
    assert ctypes.sizeof(worker.Shape) == 24


def test_slots_and_direct_are_measured_where_they_go():
    grid = worker.axes(1000)
    pairs = [("host", "same node", 1), ("host", "other node", 2)]
    pairs += [("gpu", pair, 3) for pair in ("same GPU", "peer GPU", "other node")]
    cells = worker.cells(pairs, grid)
    slots, direct = ([cell for cell in cells if cell[2] == scheme] for scheme in ("slots", "direct"))
    assert {cell[:2] for cell in slots} == {("host", "same node")}
    assert {cell[:2] for cell in direct} == {("gpu", "same GPU"), ("gpu", "peer GPU")}
    assert {cell[3] for cell in slots + direct} == {"message"}
    assert {cell[4] for cell in slots} == {4096, 32768, 262144}
    assert {cell[4] for cell in direct} == {4096, 32768, 262144, 4 << 20}
    assert not {"fabric-pipelined", "multi-write"} & {cell[2] for cell in cells}


@pytest.mark.parametrize("told", [0, 9_000])
@pytest.mark.parametrize("overlap", [0, 0.5, 1])
def test_a_fabric_costs_what_its_messages_do(told, overlap):
    def copy(size, _):
        return 0.25 * size

    def message(scheme, size, block):
        if scheme == "multi-write":
            return 30_000 + 7_000 * (size // block) + 0.5 * size + told
        segments = -(-size // (128 << 10))
        copies = 2 * copy(size, block)
        return 30_000 + 7_000 * segments + 0.5 * size + copies * (1 - overlap * (1 - 1 / segments))

    costs = worker.fabric_costs(message, copy)
    assert costs["operation_ns"] == pytest.approx(7_000)
    assert costs["byte_ns"] == pytest.approx(0.5)
    assert costs["copied_byte_ns"] == pytest.approx(0.25)
    assert costs["notification_ns"] == pytest.approx(max(told, 7_000))
    assert costs["handshake_ns"] == pytest.approx(30_000)
    assert costs["overlap"] == pytest.approx(overlap)


def test_noise_never_makes_a_cost_that_a_profile_would_be_refused_for():
    costs = worker.fabric_costs(lambda scheme, size, block: 1000.0, lambda size, block: 0.0)
    assert costs["operation_ns"] == 1.0 <= costs["notification_ns"]
    assert costs["byte_ns"] == costs["copied_byte_ns"] == 0.001
    assert 0 <= costs["overlap"] <= 1
    assert costs["handshake_ns"] >= 0


def test_a_fabric_that_is_asked_for_is_measured_too(calibrate, tmp_path):
    for neighbours, pairs in (("1", ["same node"]), ("0", [])):
        done = calibrate("mpich", GAPLESS_FABRIC="tcp", GAPLESS_FABRIC_NEIGHBOURS=neighbours)
        assert done.returncode == 0, done.stderr
        fabrics = json.loads((tmp_path / "profile.json").read_text())["fabrics"]
        assert [(each["fabric"], each["pair"]) for each in fabrics] == [("tcp", pair) for pair in pairs]
        costs = ("operation_ns", "byte_ns", "notification_ns", "copied_byte_ns")
        assert all(each[cost] > 0 for each in fabrics for cost in costs)
        assert all(0 <= each["overlap"] <= 1 and each["handshake_ns"] >= 0 for each in fabrics)
