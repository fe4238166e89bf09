"""One process of a calibration, started by a launcher with libgapless.so preloaded.

Rank 0 decides what is measured next, and broadcasts it; the others follow. What has been measured is kept in a file
beside the profile, so that a calibration that was interrupted goes on where it ended.
"""

import contextlib
import ctypes
import json
import math
import os
import signal
import socket
import statistics
import sys
import time
from pathlib import Path

from gapless.calibration import profile, sampling
from gapless.cuda_memory import GpuMemory
from gapless.environment import VARIABLES

BYTES = (64, 512, 4096, 32768, 262144, 4 << 20)
BLOCKS = (4, 16, 64, 512, 4096, 32768)
ROW_BLOCKS = (2, 16, 256)
MANY_SECONDS = 20  # with less time the grid has every second point
COMMAND_BYTES = 512
FABRIC_TIMES, FABRIC_SAMPLES = 2, 50  # messages a sample, and samples
SCHEMES = tuple(next(v for v in VARIABLES if v.name == "GAPLESS_SCHEME").values.split(", "))
ON_HOST = ("native", "packed", "slots")
# asked for by a setting, and chosen by no table
BY_FABRIC = ("fabric-pipelined", "gather-write", "scatter-read", "multi-write")
# where a scheme that two processes agree on can go: memory and pairs, the fewest and the most packed bytes
BY_HEADER = {
    "slots": ({("host", "same node")}, 1024, 1 << 20),
    "direct": ({("gpu", "same GPU"), ("gpu", "peer GPU")}, 1024, math.inf),
}


class Shape(ctypes.Structure):
    """gapless_measured_shape."""

    _fields_ = [("bytes", ctypes.c_int64), ("block", ctypes.c_int64), ("row_blocks", ctypes.c_int64)]


class Measuring:
    """The functions of src/mpi/measuring/measuring.hpp, in a process that has begun MPI."""

    def __init__(self, mpi_path: str):
        ctypes.CDLL(mpi_path, mode=ctypes.RTLD_GLOBAL)
        # The program's own scope has the preloaded library first, as for a program that is linked with MPI.
        self.program = ctypes.CDLL(None)
        self.program.MPI_Init(None, None)
        self.variant = ctypes.CDLL(self.variant_path())
        for name in ("gapless_measure_message", "gapless_measure_pack"):
            getattr(self.variant, name).restype = ctypes.c_double
        self.variant.gapless_measure_reach.restype = ctypes.c_int64
        rank, size = ctypes.c_int(), ctypes.c_int()
        self.variant.gapless_measure_world(ctypes.byref(rank), ctypes.byref(size))
        self.rank, self.size = rank.value, size.value
        largest = Shape(BYTES[-1], BLOCKS[0], ROW_BLOCKS[0])
        self.reach = 2 * self.variant.gapless_measure_reach(ctypes.byref(largest))
        self.memories = {"host": ctypes.create_string_buffer(self.reach)}
        self.packed = ctypes.create_string_buffer(BYTES[-1])

    def variant_path(self) -> str:
        report = self.program.gapless_shim_report
        report.restype = ctypes.c_size_t
        text = ctypes.create_string_buffer(65536)
        report(text, ctypes.c_size_t(len(text)))
        lines = dict(line.split("=", 1) for line in text.value.decode().splitlines() if "=" in line)
        if lines.get("state") != "active":
            raise RuntimeError(f"gapless is off: {lines.get('why', 'it is not preloaded')}")
        return lines["variant"]

    def broadcast(self, value, root: int = 0):
        """The root's value, of what JSON can say in so many bytes."""
        text = json.dumps(value).encode() if self.rank == root else b""
        buffer = ctypes.create_string_buffer(text, COMMAND_BYTES)
        self.variant.gapless_measure_broadcast(buffer, COMMAND_BYTES, root)
        return json.loads(buffer.value)

    def message(self, memory: str, scheme: str, shape: list[int], first: int, second: int, times: int) -> float:
        where = self.memories.get(memory)
        arguments = (scheme.encode(), ctypes.byref(Shape(*shape)), where, first, second, times)
        ns = self.variant.gapless_measure_message(*arguments)
        if ns < 0:
            raise RuntimeError(f"MPI failed in a {scheme} message of {shape[0]} bytes")
        return ns

    def posts(self) -> int:
        """Operations of a fabric so far."""
        counts = (ctypes.c_uint64 * 16)()
        ctypes.CDLL("libgapless-core.so").gapless_fabric_counts(counts)  # the one that is loaded
        return counts[0]

    def pack(self, scheme: str, shape: list[int], unpacks: bool, times: int) -> float:
        arguments = (scheme.encode(), ctypes.byref(Shape(*shape)), self.memories["host"], self.packed, unpacks, times)
        return max(self.variant.gapless_measure_pack(*arguments), 0.0)


def follow(measuring: Measuring) -> None:
    """What every rank but 0 does."""
    while command := measuring.broadcast(None):
        measuring.message(*command)


def pairs(processes: list[dict]) -> list[tuple[str, str, int]]:
    """(memory, pair kind, partner of rank 0), one partner for each that there is."""
    found: dict[tuple[str, str], int] = {}
    first = processes[0]
    for rank, process in enumerate(processes[1:], 1):
        is_near = process["node"] == first["node"]
        found.setdefault(("host", "same node" if is_near else "other node"), rank)
        if first["gpu"] and process["gpu"]:
            near = "same GPU" if process["gpu"] == first["gpu"] else "peer GPU"
            found.setdefault(("gpu", near if is_near else "other node"), rank)
    return [(memory, kind, rank) for (memory, kind), rank in found.items()]


def axes(seconds: float) -> tuple[tuple[int, ...], ...]:
    step = 1 if seconds >= MANY_SECONDS else 2
    return BYTES[::step], BLOCKS[::step], ROW_BLOCKS[:: 2 * step - 1]


def is_shape(size: int, block: int, row_blocks: int) -> bool:
    """Are there such rows? Two blocks at least, or the message is contiguous."""
    return size // block >= max(row_blocks, 2)


def schemes_for(memory: str, pair: str, size: int) -> list[str]:
    """Those that may carry messages of so many packed bytes."""

    def may_carry(scheme: str) -> bool:
        if scheme in BY_HEADER:
            places, least, most = BY_HEADER[scheme]
            return (memory, pair) in places and least <= size <= most
        return scheme not in BY_FABRIC and (scheme in ON_HOST) == (memory == "host")

    return [scheme for scheme in SCHEMES if may_carry(scheme)]


def cells(found_pairs, grid) -> list[tuple]:
    """(memory, pair, scheme, quantity, bytes, block, row_blocks), in the order of measuring: short messages first, and
    what is compared one after the other."""
    sizes, blocks, rows = grid
    listed: list[tuple] = []
    for size in sizes:
        shapes = [(size, block, row) for block in blocks for row in rows if is_shape(size, block, row)]
        for memory, pair, _ in found_pairs:
            schemes = schemes_for(memory, pair, size)
            if memory == "host":
                listed.append((memory, pair, "packed", "move", size, 1, 1))
            for shape in shapes:
                listed += [(memory, pair, scheme, "message", *shape) for scheme in schemes]
                if memory == "host":
                    packing = [s for s in schemes if s not in BY_HEADER]
                    listed += [(memory, pair, s, what, *shape) for s in packing for what in ("pack", "unpack")]
    return listed


class Progress:
    """A bar where tqdm is installed."""

    def __init__(self, total: int, done: int):
        try:
            from tqdm import tqdm
        except ImportError:
            self.bar = None
            print(f"gapless: measuring {total} points; install tqdm for a progress bar", file=sys.stderr)
        else:
            self.bar = tqdm(total=total, initial=done, unit="point", mininterval=0.5, desc="calibrate", ascii=True)

    def step(self) -> None:
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


class Calibration:
    """Rank 0: goes through the cells, keeps what is measured, and writes the profile."""

    def __init__(self, measuring: Measuring, work: dict, found_pairs):
        self.measuring, self.identity = measuring, work["identity"]
        self.partners = {(memory, pair): rank for memory, pair, rank in found_pairs}
        self.output = Path(work["output"])
        self.unfinished = profile.unfinished(self.output)
        self.grid = axes(work["seconds"])
        self.seconds = work["seconds"]
        self.cells = cells(found_pairs, self.grid)
        self.known = self.load()
        self.written = time.monotonic()

    def load(self) -> dict[str, float | None]:
        """What an earlier calibration of the same things has measured."""
        with contextlib.suppress(OSError, ValueError, AttributeError, TypeError, LookupError, RecursionError):
            kept = json.loads(self.unfinished.read_text())
            if kept["identity"] == self.identity and kept["version"] == profile.VERSION:
                return {
                    key: value
                    for key, value in kept["cells"].items()
                    if value is None or (isinstance(value, float) and math.isfinite(value) and value > 0)
                }
        return {}

    def keep(self) -> None:
        if time.monotonic() - self.written < 1:
            return
        profile.write(self.unfinished, {"version": profile.VERSION, "identity": self.identity, "cells": self.known})
        self.written = time.monotonic()

    def sample(self, cell: tuple, times: int) -> float:
        memory, pair, scheme, quantity, size, block, row_blocks = cell
        if quantity in ("pack", "unpack"):
            return self.measuring.pack(scheme, [size, block, row_blocks], quantity == "unpack", times)
        shape, way = ([size, size, 1], "native") if quantity == "move" else ([size, block, row_blocks], scheme)
        command = [memory, way, shape, 0, self.partners[memory, pair], times]
        self.measuring.broadcast(command)
        return self.measuring.message(*command)

    def run(self) -> None:
        left = [cell for cell in self.cells if key_of(cell) not in self.known]
        end = time.monotonic() + self.seconds
        bar = Progress(len(self.cells), len(self.cells) - len(left))
        for number, cell in enumerate(left):
            # Cells that are soon measured leave their time to the others.
            share = max(end - time.monotonic(), 0.0) / (len(left) - number)
            self.known[key_of(cell)] = sampling.median_of(lambda times, cell=cell: self.sample(cell, times), 3 * share)
            self.keep()
            bar.step()
        bar.close()
        content = {"gapless_profile": profile.VERSION, **self.identity, "tables": self.tables()}
        profile.write(self.output, content | self.fabrics())
        self.unfinished.unlink(missing_ok=True)

    def fabrics(self) -> dict:
        """What messages by the fabric that is asked for are made of."""
        fabric = os.environ.get("GAPLESS_FABRIC", "off")
        if fabric == "off":
            return {}
        found = []
        for (memory, pair), partner in self.partners.items():
            if memory != "host":
                continue

            def message(scheme, size, block, partner=partner):
                command = ["host", scheme, [size, block, 1], 0, partner, FABRIC_TIMES]
                times = []
                for _ in range(FABRIC_SAMPLES):
                    self.measuring.broadcast(command)
                    times.append(self.measuring.message(*command))
                return statistics.median(times)

            def copy(size, block):
                shape = [size, block, 1]
                return statistics.median(self.measuring.pack("packed", shape, False, 1) for _ in range(FABRIC_SAMPLES))

            before = self.measuring.posts()
            costs = fabric_costs(message, copy)
            # Where such processes do not use the fabric, the messages went another way.
            if self.measuring.posts() > before:
                found.append({"fabric": fabric, "pair": pair, **costs})
        return {"fabrics": found}

    def tables(self) -> list[dict]:
        """Those of which every number of bytes that the scheme can carry has a time."""
        _, blocks, rows = self.grid
        result = []
        for memory, pair, scheme, quantity in dict.fromkeys(cell[:4] for cell in self.cells):
            inner = ([1], [1]) if quantity == "move" else (blocks, rows)
            kind = (memory, pair, scheme, quantity)
            sizes = list(dict.fromkeys(cell[4] for cell in self.cells if cell[:4] == kind))

            def at(*shape, of=kind):
                return self.known.get(key_of((*of, *shape)))

            ns = [[[at(size, block, row) for row in inner[1]] for block in inner[0]] for size in sizes]
            if not all(any(t is not None for line in part for t in line) for part in ns):
                continue
            named = {"memory": memory, "pair": pair, "scheme": scheme, "quantity": quantity}
            result.append({**named, "bytes": sizes, "block": inner[0], "row_blocks": inner[1], "ns": ns})
        return result


def fabric_costs(message, copy) -> dict[str, float]:
    """`message(scheme, bytes, block)` says what a message takes, `copy(bytes, block)` what packing takes.

    Multi-write is an operation for each block and copies nothing, so that most costs are differences. Where its
    receiver is told by an operation of its own, pipelined in one segment saves that. In eight segments pipelined takes
    longer than as many operations by what remains of its copies.
    """
    size, large, small, few, many = 64 << 10, 1 << 20, 16 << 10, 4, 128
    plain = message("multi-write", size, size // few)
    operation = max((message("multi-write", size, size // many) - plain) / (many - few), 1.0)
    byte = max((message("multi-write", large, large // few) - plain) / (large - size), 0.001)
    copied_byte = max(copy(large, large // many) / large, 0.001)
    told = message("multi-write", small, small // few) - (few - 1) * operation
    untold = message("fabric-pipelined", small, small // few) - 2 * small * copied_byte
    telling = max(told - untold, 0.0)
    segments = 8
    moved = plain - telling + (segments - few) * operation + (large - size) * byte
    copies = 2 * large * copied_byte
    remains = message("fabric-pipelined", large, large // many) - moved
    overlap = (copies - remains) / (copies * (1 - 1 / segments))
    return {
        "operation_ns": operation,
        "byte_ns": byte,
        "notification_ns": max(telling, operation),
        "copied_byte_ns": copied_byte,
        "overlap": min(max(overlap, 0.0), 1.0),
        "handshake_ns": max(plain - telling - few * operation - size * byte, 0.0),
    }


def key_of(cell: tuple) -> str:
    return "|".join(map(str, cell))


def main(text: str) -> int:
    # Who interrupts a calibration is told by `gapless calibrate` what is kept, and by no traceback of each process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    work = json.loads(text)
    measuring = Measuring(work["mpi"])
    gpu = GpuMemory.allocate(measuring.rank, measuring.reach) if work["identity"]["gpu"] else None
    if gpu is not None:
        measuring.memories["gpu"] = gpu.pointer
    own = {"node": socket.gethostname()[:200], "gpu": gpu.uuid if gpu is not None else None}
    processes = [measuring.broadcast(own, root) for root in range(measuring.size)]
    status = 0
    if measuring.rank != 0:
        follow(measuring)
    elif measuring.size < 2:
        print(
            f"gapless: a calibration needs two processes that {work['mpi']} knows of: start them by that library's own "
            "launcher (--mpirun 'mpirun -n 2'), or name another library (--library)",
            file=sys.stderr,
        )
        status = 2
    else:
        try:
            Calibration(measuring, work, pairs(processes)).run()
            if "last_words" in work:
                print(work["last_words"])
        except (OSError, RuntimeError) as error:
            print(f"gapless: {error}", file=sys.stderr)
            status = 1
    if measuring.rank == 0:
        measuring.broadcast(None)
    measuring.program.MPI_Finalize()
    return status


if __name__ == "__main__":
    ended = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(ended)
