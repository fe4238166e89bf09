"""Benchmark results: targets that are missed are listed, and what cannot be read is named."""

import json

import pytest

from gapless.command import bench
from gapless.documents import results
from gapless.errors import UserError

RESULT = {
    "benchmark": "pack",
    "machine": {"name": "a machine"},
    "commit": "abc",
    "date": "2026-01-01",
    "rows": [],
    "bars": [
        {"name": "fast", "asks": ">= 1", "figure": 1.2345, "holds": True},
        {"name": "faster", "asks": ">= 2", "figure": 1.5, "holds": False},
    ],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pack.json").write_text(json.dumps(RESULT))
    return tmp_path


def test_check_lists_what_does_not_hold(folder, capsys):
    assert bench.check(folder) == 1
    assert capsys.readouterr().out.splitlines() == [
        "pack on a machine: faster: asks >= 2, measured 1.5",
        "1 of 2 targets are met",
    ]


def test_check_succeeds_when_all_hold(folder, capsys):
    held = {**RESULT, "bars": RESULT["bars"][:1]}
    (folder / "a" / "pack.json").write_text(json.dumps(held))
    assert bench.check(folder) == 0
    assert capsys.readouterr().out == "1 of 1 targets are met\n"


def test_every_benchmark_is_listed_with_what_it_measures(gapless, root):
    listed = dict(line.split("  ", 1) for line in gapless("bench", "--list").stdout.splitlines())
    assert {name.strip() for name in listed} == bench.benchmarks(root / "bench").keys()
    assert all(len(what.strip()) > 20 for what in listed.values())


@pytest.mark.parametrize("text, word", [("{", "not JSON"), ('{"benchmark": "x"}', "lacks machine")])
def test_a_broken_result_is_named(tmp_path, text, word):
    (tmp_path / "broken.json").write_text(text)
    with pytest.raises(UserError, match=word):
        results.load(tmp_path)


def test_without_results_check_fails(tmp_path):
    with pytest.raises(UserError, match="no results"):
        bench.check(tmp_path)
