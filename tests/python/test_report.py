"""`gapless report` on runs with every MPI at hand and on files made here."""

import contextlib
import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import LIBRARIES, PREFIXES, for_each_mpi, is_mistake
from gapless.command import report as reports
from gapless.errors import UserError

LAUNCHERS = {"mpich": ["mpiexec", "-n", "2"], "openmpi": ["mpirun", "--oversubscribe", "-n", "2"]}
MESSAGES = 400


def program(body):
    """Of a rank and its `memory`, of zeros."""
    return f"""
#include <mpi.h>
#include <stdlib.h>
int main(int c, char **v) {{
  MPI_Init(&c, &v);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *memory = calloc(1, 8 << 20);
  {body}
  free(memory);
  return MPI_Finalize();
}}
"""


PROGRAM = program(f"""
  MPI_Datatype vector;
  MPI_Type_vector(512, 1, 4, MPI_INT, &vector);
  MPI_Type_commit(&vector);
  for (int i = 0; i < {MESSAGES}; ++i) {{
    if (rank == 0) MPI_Send(memory, 1, vector, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(memory, 1, vector, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(memory, 100, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(memory, 100, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }}
  MPI_Type_free(&vector);
""")
# Types that live shortly, some of whose layouts lie where an earlier one has lain, and more than a report tells apart.
TYPES, TOLD_APART = 203, 200
SHORT_LIVED = program(f"""
  for (int stride = 2; stride < 2 + {TYPES}; ++stride) {{
    MPI_Datatype vector;
    MPI_Type_vector(512, 1, stride, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    if (rank == 0) MPI_Send(memory, 1, vector, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(memory, 1, vector, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&vector);
  }}
""")

# Receives whose messages come by header although the library could take them as they are.
COUNTED = program(f"""
  MPI_Datatype vector;
  MPI_Type_vector(512, 1, 4, MPI_INT, &vector);
  MPI_Type_commit(&vector);
  for (int i = 0; i < {MESSAGES}; ++i) {{
    MPI_Request request;
    if (rank == 0) MPI_Isend(memory, 1, vector, 1, 0, MPI_COMM_WORLD, &request);
    if (rank == 1) MPI_Irecv(memory, 512, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(memory, 1, vector, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(memory, 1, vector, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }}
  MPI_Type_free(&vector);
""")


@pytest.fixture
def run(gapless, tmp_path):
    """run(kind, compiler, **environment) -> CompletedProcess of the program, with the report tmp_path/report."""

    def call(kind, compiler, text=PROGRAM, **changes):
        source, program = tmp_path / "messages.c", tmp_path / "messages"
        source.write_text(text)
        subprocess.run([f"{PREFIXES[kind]}/bin/{compiler}", source, "-o", program], check=True)
        path = f"{PREFIXES[kind]}/bin:{os.environ['PATH']}"
        changes = {"PATH": path, "GAPLESS_REPORT": str(tmp_path / "report"), **changes}
        return gapless("run", *LAUNCHERS[kind], program, OMPI_MCA_mpi_yield_when_idle="1", **changes)

    return call


@for_each_mpi
def test_a_run_is_reported(run, gapless, tmp_path, kind, compiler, abi, name):
    done = run(kind, compiler, GAPLESS_SCHEME="packed")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    contents = [json.loads((tmp_path / f"report.{rank}.json").read_text()) for rank in (0, 1)]
    assert [(content["rank"], content["ranks"]) for content in contents] == [(0, 2), (1, 2)]
    assert all(content["library"].startswith(f"{name} ") and content["profile"] for content in contents)
    for content, side in zip(contents, ("sender", "receiver"), strict=True):
        (packed,) = [row for row in content["rows"] if row["scheme"] == "packed"]
        # Some first uses of the type may have been the library's own.
        assert MESSAGES * 0.9 <= packed["messages"] <= MESSAGES and packed["bytes"] == packed["messages"] * 2048
        assert (packed["side"], packed["bytes_below"], packed["block_below"]) == (side, 4096, 8)
        assert packed["moved"]["count"] == packed["messages"] and packed["moved"]["ns"] > 0
        assert packed["sent"]["count"] == (packed["messages"] if side == "sender" else 0)
        natives = [row for row in content["rows"] if row["scheme"] == "native" and row["bytes_below"] == 512]
        assert sum(row["bytes"] for row in natives) == MESSAGES * 400
        assert content["types"][0]["schemes"]["packed"]["messages"] == packed["messages"]
    text = gapless("report", tmp_path / "report")
    assert text.returncode == 0, text.stderr
    assert re.search(r"^packed +sender +<4K +<8 ", text.stdout, re.MULTILINE)
    assert re.search(r"^packed +receiver +<4K +<8 ", text.stdout, re.MULTILINE)
    assert "2 ranks" in text.stdout and "512 x 16" in text.stdout
    assert "1 of 2 ranks," in gapless("report", tmp_path / "report.0.json").stdout


@for_each_mpi
def test_types_that_live_shortly_are_told_apart(run, tmp_path, kind, compiler, abi, name):
    done = run(kind, compiler, SHORT_LIVED, GAPLESS_SCHEME="packed")
    assert done.returncode == 0, done.stderr
    *types, others = json.loads((tmp_path / "report.0.json").read_text())["types"]
    assert [each["schemes"]["packed"]["messages"] for each in types] == [1] * TOLD_APART
    assert others["type"] == "other types" and others["schemes"]["packed"]["messages"] == TYPES - TOLD_APART


@for_each_mpi
def test_slots_are_reported(run, gapless, tmp_path, kind, compiler, abi, name):
    done = run(kind, compiler, GAPLESS_SCHEME="slots")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for rank, side in enumerate(("sender", "receiver")):
        content = json.loads((tmp_path / f"report.{rank}.json").read_text())
        (slots,) = [row for row in content["rows"] if row["scheme"] == "slots"]
        # The first ones are packed, until the receiver gives attention.
        assert MESSAGES * 0.9 <= slots["messages"] <= MESSAGES and slots["bytes"] == slots["messages"] * 2048
        assert (slots["side"], slots["bytes_below"], slots["block_below"]) == (side, 4096, 8)
        assert slots["moved"]["count"] == slots["messages"] and slots["moved"]["ns"] > 0
        assert slots["sent"]["count"] == (slots["messages"] if side == "sender" else 0)
        assert content["types"][0]["schemes"]["slots"]["messages"] == slots["messages"]
    text = gapless("report", tmp_path / "report").stdout
    assert re.search(r"^slots +sender +<4K +<8 ", text, re.MULTILINE)
    assert re.search(r"slots \d+", text.splitlines()[-1])


@for_each_mpi
def test_each_message_is_counted_once(run, tmp_path, kind, compiler, abi, name):
    """By both ends, as what it became: also where a receive was the library's until a header came."""
    for settings in ({"GAPLESS_SCHEME": "slots"}, {"GAPLESS_MODEL": "fixed"}, {}):
        done = run(kind, compiler, COUNTED, GAPLESS_STATISTICS="1", **settings)
        assert done.returncode == 0, done.stderr
        for rank in (0, 1):
            rows = json.loads((tmp_path / f"report.{rank}.json").read_text())["rows"]
            for side in ("sender", "receiver"):
                assert sum(row["messages"] for row in rows if row["side"] == side) == MESSAGES, (settings, rank, rows)
                assert sum(row["bytes"] for row in rows if row["side"] == side) == MESSAGES * 2048
            if "GAPLESS_SCHEME" in settings:
                by_slots = [row["messages"] for row in rows if row["scheme"] == "slots"]
                assert len(by_slots) == 2 and min(by_slots) > MESSAGES * 0.9
        counts = [int(number) for number in re.findall(r"(\d+) messages?", done.stderr)]
        assert sum(counts) == 4 * MESSAGES, done.stderr


@pytest.mark.parametrize("kind, compiler", [row[:2] for row in LIBRARIES if row[0] == "mpich"][:1])
def test_what_a_profile_predicts_of_slots_is_reported(run, tmp_path, kind, compiler):
    def table(scheme, quantity, ns):
        axes = {"bytes": [2048], "block": [4], "row_blocks": [512]}
        named = {"memory": "host", "pair": "same node", "scheme": scheme, "quantity": quantity}
        return {**named, **axes, "ns": [[[ns]]]}

    tables = [table("native", "message", 9000), table("packed", "message", 8000), table("packed", "pack", 500)]
    tables += [table("packed", "unpack", 700), table("slots", "message", 3000)]
    assert run(kind, compiler).returncode == 0
    library = json.loads((tmp_path / "report.0.json").read_text())["library"]
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({"gapless_profile": 1, "library": library, "gpu": None, "tables": tables}))
    # Chosen by the profile, and not forced: built in, 2 KiB would not go by slots under MPICH.
    done = run(kind, compiler, GAPLESS_PROFILE=str(profile), GAPLESS_MODEL="fixed")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for rank, ns in ((0, 500), (1, 700)):
        content = json.loads((tmp_path / f"report.{rank}.json").read_text())
        (slots,) = [row for row in content["rows"] if row["scheme"] == "slots"]
        assert slots["messages"] >= MESSAGES * 0.9
        assert slots["moved"]["compared"] == slots["messages"]
        assert slots["moved"]["predicted_ns"] == pytest.approx(ns * slots["messages"])
        if rank == 0:
            assert slots["sent"]["predicted_ns"] == pytest.approx(3000 * slots["messages"])
    # Slots that are predicted to be slower than packing are not chosen.
    tables[-1] = table("slots", "message", 8500)
    profile.write_text(json.dumps({"gapless_profile": 1, "library": library, "gpu": None, "tables": tables}))
    assert run(kind, compiler, GAPLESS_PROFILE=str(profile), GAPLESS_MODEL="fixed").returncode == 0
    rows = json.loads((tmp_path / "report.0.json").read_text())["rows"]
    assert {row["scheme"] for row in rows} == {"native", "packed"}


# Open MPI's own library believes these variables too; what reads them here is the same in every variant.
@pytest.mark.parametrize("kind, compiler", [row[:2] for row in LIBRARIES if row[0] == "mpich"])
@pytest.mark.parametrize("nodes, pair", [(1, "same node"), (2, "other node")])
@pytest.mark.parametrize(
    "launcher",
    [
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
        ("MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"),
        ("SLURM_STEP_NUM_NODES",),
        ("FLUX_JOB_NNODES",),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_NODES"),  # mpirun of a job of Slurm's
    ],
)
def test_the_launcher_says_what_pairs_there_are(gapless, hello, tmp_path, kind, compiler, launcher, nodes, pair):
    values = {"LOCAL_SIZE": str(2 // nodes), "WORLD_SIZE": "2", "NODES": str(nodes if len(launcher) == 1 else 4)}
    settings = {name: value for name in launcher for end, value in values.items() if name.endswith(end)}
    settings["GAPLESS_REPORT"] = str(tmp_path / "r")
    assert gapless("run", hello(kind, compiler), **settings).returncode == 0
    assert json.loads((tmp_path / "r.0.json").read_text())["pair"] == pair


@for_each_mpi
def test_a_report_that_cannot_be_written_is_one_line_a_rank(run, tmp_path, kind, compiler, abi, name):
    done = run(kind, compiler, GAPLESS_REPORT=str(tmp_path / "no" / "folder"))
    assert (done.returncode, done.stdout) == (0, "")
    lines = sorted(done.stderr.splitlines())
    assert lines == [
        f"gapless: GAPLESS_REPORT: {tmp_path}/no/folder.{rank}.json: ignored; the report cannot be written there"
        for rank in (0, 1)
    ]


@pytest.fixture
def report(tmp_path):
    """A report of one rank, made by hand: 4 messages of which 2 were predicted at half of their time."""
    times = {"count": 4, "ns": 8000.0, "compared": 2, "compared_ns": 4000.0, "predicted_ns": 2000.0}
    none = {"count": 0, "ns": 0.0, "compared": 0, "compared_ns": 0.0, "predicted_ns": 0.0}
    row = {"scheme": "packed", "side": "sender", "bytes_below": 1 << 21, "block_below": 16, "messages": 4, "bytes": 99}
    types = [{"type": "block <1>", "size": 3, "schemes": {"packed": {"messages": 4, "bytes": 99}}}]
    content = {"gapless_report": 1, "rank": 0, "ranks": 1, "library": "MPICH 5.0.2", "profile": "built-in"}
    path = tmp_path / "made.0.json"
    path.write_text(json.dumps({**content, "rows": [{**row, "moved": times, "sent": none}], "types": types}))
    return path


def test_the_text(gapless, report):
    lines = gapless("report", report).stdout.splitlines()
    assert lines[0] == "MPICH 5.0.2, 1 rank, profile built-in"
    assert lines[3].split() == ["packed", "sender", "<2M", "<16", "4", "99", "2.00", "1.00", "-", "-"]
    assert lines[-1] == "  packed 4: block <1>"


def test_native_messages_and_those_of_them_that_were_timed_are_one_line(gapless, report):
    content = json.loads(report.read_text())
    row = {**content["rows"][0], "scheme": "native"}
    none = {**dict.fromkeys(row["moved"], 0)}
    counted = {**row, "block_below": 0, "moved": none}
    timed = {**row, "messages": 0, "bytes": 0, "moved": none, "sent": row["moved"]}
    report.write_text(json.dumps({**content, "rows": [counted, timed]}))
    lines = gapless("report", report).stdout.splitlines()
    assert lines[3].split() == ["native", "sender", "<2M", "-", "4", "99", "-", "-", "2.00", "1.00"]
    assert lines[4] == ""


def test_what_a_run_with_more_ranks_left_behind_is_not_read(gapless, report, tmp_path):
    content = json.loads(report.read_text())
    for rank in range(4):
        ranks = 2 if rank < 2 else 4
        (tmp_path / f"run.{rank}.json").write_text(json.dumps({**content, "rank": rank, "ranks": ranks}))
    done = gapless("report", tmp_path / "run")
    assert "2 ranks," in done.stdout
    assert done.stderr.startswith("gapless: left out") and done.stderr.endswith(
        f"{tmp_path}/run.2.json, {tmp_path}/run.3.json\n"
    )


@pytest.mark.parametrize("path", ["", "run", "folder/", "folder/.", "folder/..", ".", ".hidden", "folder//run"])
def test_a_report_is_found_by_the_text_that_the_rank_is_put_behind(gapless, report, tmp_path, monkeypatch, path):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    if path == "":
        done = gapless("report", path)
        assert is_mistake(done, 2)
        assert done.stderr == "gapless: the path of the report is empty\n"
        return
    missing = gapless("report", path)
    assert is_mistake(missing, 1)
    assert f"there is no report {path}.<rank>.json" in missing.stderr
    Path(f"{path}.0.json").write_text(report.read_text())
    assert "1 rank," in gapless("report", path).stdout


def test_the_ranks_whose_files_are_missing_are_counted(gapless, report, tmp_path):
    (tmp_path / "run.0.json").write_text(json.dumps({**json.loads(report.read_text()), "ranks": 4}))
    assert "1 of 4 ranks," in gapless("report", tmp_path / "run").stdout


def test_other_reports_beside_it_are_not_read(gapless, report, tmp_path):
    content = report.read_text()
    for name in ("run[1].0.json", "run1.0.json", "run.0.json", "run.2.0.json", "run.old.json"):
        (tmp_path / name).write_text(content)
    assert "1 rank," in gapless("report", tmp_path / "run[1]").stdout
    assert "1 rank," in gapless("report", tmp_path / "run").stdout


def test_the_page_needs_nothing_else(gapless, report, tmp_path):
    page = tmp_path / "page.html"
    done = gapless("report", report, "--html", page)
    if importlib.util.find_spec("matplotlib") is None:
        assert is_mistake(done, 1) and "matplotlib" in done.stderr and not page.exists()
        return
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.count("<svg") == 2 and "block &lt;1&gt;" in text and "<td>2.00</td>" in text
    assert re.search(r"<(script|link|img|iframe)\b|src=|@import|url\(http", text) is None


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "is no report of gapless"),
        ("{}", "is no report of gapless"),
        ("[1]", "is no report of gapless"),
        ('{"gapless_report": 2}', "is a report of version 2, and not 1"),
        ("[" * 200000 + "]" * 200000, "is no report of gapless"),
        ('{"gapless_report": 1}', "is no whole report of gapless"),
        ('{"gapless_report": 1, "rank": "0", "ranks": 1, "profile": ""}', "is no whole report of gapless"),
    ],
)
def test_what_is_no_report_is_one_line(gapless, tmp_path, text, why):
    path = tmp_path / "wrong.0.json"
    path.write_text(text)
    done = gapless("report", tmp_path / "wrong")
    assert is_mistake(done, 1) and why in done.stderr


def whole_report():
    times = {"count": 1, "ns": 5.0, "compared": 1, "compared_ns": 5.0, "predicted_ns": 4.0}
    row = {"scheme": "packed", "side": "sender", "bytes_below": 8, "block_below": 8, "messages": 1, "bytes": 4}
    type_of = {"type": "int", "size": 4, "schemes": {"packed": {"messages": 1, "bytes": 4}}}
    head = {"gapless_report": 1, "rank": 0, "ranks": 1, "library": "MPICH", "profile": "built-in"}
    return head | {"rows": [row | {"moved": dict(times), "sent": dict(times)}], "types": [type_of]}


def places(value, path=()):
    """The paths of all values within it."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


@pytest.mark.parametrize("wrong", [None, "x", -1, [], [None], {}, 10**400, True])
def test_a_report_with_anything_else_in_a_place_is_read_or_one_line(tmp_path, wrong):
    path = tmp_path / "report.0.json"
    for place in places(whole_report()):
        content = whole_report()
        within = content
        for key in place[:-1]:
            within = within[key]
        within[place[-1]] = wrong
        path.write_text(json.dumps(content))
        with contextlib.suppress(UserError):
            merged = reports.merge(str(path))
            assert len(reports.lines(merged)) <= 1 and len(reports.type_lines(merged)) <= 1 and reports.title(merged)


def test_a_whole_report_is_read(tmp_path):
    path = tmp_path / "report.0.json"
    path.write_text(json.dumps(whole_report()))
    assert len(reports.lines(reports.merge(str(path)))) == 1


def test_no_report_is_one_line(gapless, tmp_path):
    assert is_mistake(gapless("report", tmp_path / "none"), 1)
