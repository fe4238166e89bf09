"""Benchmark results: targets that are missed are listed, and what cannot be read is named."""

import argparse
import json
import os
import subprocess
import sys

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


def test_all_leaves_out_what_needs_options(tmp_path, monkeypatch, capfd):
    """Each benchmark says its name and the options it was given, and knows no others' options."""
    names = ("alone", "needy", "second")
    (tmp_path / "bench").mkdir()
    for name in names:
        text = "import argparse\np = argparse.ArgumentParser()\np.add_argument('build')\np.add_argument('--quick')\n"
        text += "p.add_argument('--programs', required=True)\n" if name == "needy" else ""
        (tmp_path / "bench" / f"{name}.py").write_text(f"{text}print('{name}', p.parse_args().quick)\n")
    monkeypatch.setattr(bench.locate, "CHECKOUT", tmp_path)
    monkeypatch.setattr(bench.locate, "is_checkout", lambda: True)
    monkeypatch.setattr(bench, "build_directory", lambda: tmp_path)
    given = argparse.Namespace(check=False, list=False, name="all", options=["--quick", "1"])
    assert bench.bench(given) == 0
    assert capfd.readouterr() == ("alone 1\nsecond 1\n", "gapless: left out: needy needs --programs\n")


def test_the_options_that_a_benchmark_needs_are_known(root):
    needed = {name: bench.required_options(path) for name, path in bench.benchmarks(root / "bench").items()}
    assert {name: options for name, options in needed.items() if options} == {
        "ddtbench": ["--programs"],
        "gpu_programs": ["--programs"],
    }


def run_benchmark(root, name, *words, **settings):
    command = [sys.executable, root / "bench" / f"{name}.py", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **settings})


def test_a_benchmark_without_a_gpu_is_one_line(root, tmp_path):
    for name, words in (("gpu_programs", ["--programs", tmp_path]), ("halo", []), ("messages", [])):
        done = run_benchmark(root, name, tmp_path, *words, PATH=str(tmp_path))
        assert (done.returncode, done.stderr) == (1, "this benchmark needs an NVIDIA GPU (nvidia-smi)\n")


def test_a_folder_that_is_no_build_directory_is_one_line(root, program, tmp_path):
    (tmp_path / "bin").mkdir()
    program("bin/host_pack_mpich", "")
    done = run_benchmark(root, "host_pack", tmp_path, "--mpi", "mpich", "--no-write")
    assert (done.returncode, done.stderr) == (1, f"{tmp_path} is no build directory\n")


def test_a_layout_that_there_is_not_is_one_line(root, program, tmp_path):
    (tmp_path / "bin").mkdir()
    program("bin/host_pack_mpich", "")
    program("bin/mpiexec", """echo '{"library": "MPICH", "engine": "avx2"}'""")
    (tmp_path / "CMakeCache.txt").write_text(f"GAPLESS_MPICH_PREFIX:PATH={tmp_path}\n")
    done = run_benchmark(root, "host_pack", tmp_path, "--mpi", "mpich", "--only", "nothing", "--no-write")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no layout has nothing in its name\n")


@pytest.mark.parametrize("text, word", [("{", "not JSON"), ('{"benchmark": "x"}', "lacks machine")])
def test_a_broken_result_is_named(tmp_path, text, word):
    (tmp_path / "broken.json").write_text(text)
    with pytest.raises(UserError, match=word):
        results.load(tmp_path)


def test_without_results_check_fails(tmp_path):
    with pytest.raises(UserError, match="no results"):
        bench.check(tmp_path)
