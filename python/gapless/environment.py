"""Every environment variable of gapless, as documented: `gapless variables` and docs/environment.md say this table.

The library reads them by the table in src/base/settings.cpp; a test compares names and accepted values with these.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    name: str
    values: str
    default: str
    meaning: str
    for_developers: bool = False

    def words(self) -> list[str]:
        """The values; empty where they are described."""
        return [] if self.values.startswith("a ") else self.values.split(", ")


VARIABLES = (
    Variable("GAPLESS", "0, 1", "1", "0: every MPI call passes through to the MPI library untouched."),
    Variable(
        "GAPLESS_VERBOSE",
        "0, 1",
        "0",
        "1: say on stderr which MPI library and variant are in use, or why gapless is off.",
    ),
    Variable(
        "GAPLESS_STATISTICS",
        "0, 1",
        "0",
        "1: at MPI_Finalize print on stderr, per rank, how often each scheme was chosen and how many bytes it moved. "
        "Every part of a collective that gapless moves is a message; collectives that are left to the library, and "
        "starts of persistent requests that are, are not counted. Do not time a program with it: each message is "
        "looked at, also those that would go straight through.",
    ),
    Variable(
        "GAPLESS_ALL_RANKS",
        "0, 1",
        "1 under gapless run with mpirun, mpiexec or srun, else 0",
        "1: a promise that every process of the job runs gapless; where it does not hold, processes wait for ever. "
        "Then blocking collectives of GPU memory, but MPI_Gatherv, MPI_Scatterv and scans, go from GPU to GPU in a job "
        "on one node where that is sooner, messages and exchanges between nodes go by a fabric (GAPLESS_FABRIC) where "
        "that is sooner, and MPI_Win_create on GPU memory that the MPI library cannot read fails at all processes, and "
        "not only where the memory is.",
    ),
    Variable(
        "GAPLESS_HEADERS",
        "0, 1",
        "1",
        "0: this process sends and receives no headers. With them messages between processes of a node go by slots, "
        "and those of GPU memory direct, where that is predicted to be faster. Has no effect where GAPLESS_SCHEME is "
        "set (slots or direct there imply headers), or where messages go by a fabric, which needs them.",
    ),
    Variable(
        "GAPLESS_PULL",
        "0, 1",
        "1",
        "0: no process of the node maps GPU memory that the program has allocated; messages that go direct are packed "
        "into memory of gapless's own. With 1, a process reads messages straight out of the program's memory, once a "
        "few have come from the same allocation.",
    ),
    Variable(
        "GAPLESS_IPC",
        "0, 1",
        "1",
        "0: gapless maps no GPU memory of another process, as where the driver refuses that (GPUs that do not reach "
        "each other, instances of a GPU in parts). Messages between GPUs of the node go through page-locked memory "
        "that both processes map.",
    ),
    Variable(
        "GAPLESS_PULL_PATIENCE",
        "a number of microseconds",
        "200",
        "How long a send leaves its bytes in the program's memory while its peer receives nothing; 20 ms at least "
        "above 8 MiB and in host memory. Then they are packed into memory of gapless's own, and the send is complete.",
    ),
    Variable(
        "GAPLESS_SCHEME",
        "native, packed, oneshot, staged, pipelined, device, slots, direct, fabric-pipelined, gather-write, "
        "scatter-read, multi-write",
        "chosen per message",
        "Force one scheme for every message that it can carry. slots and direct are used between processes of a node "
        "that all ask for them; the last four, of which the receiver chooses, where GAPLESS_FABRIC is set.",
    ),
    Variable(
        "GAPLESS_PROFILE",
        "a path, or built-in",
        "the MPI library's file in ~/.config/gapless, if there is one",
        "The profile that predictions are made from, as `gapless calibrate` writes it. One that is of another library, "
        "GPU or version, or damaged, is ignored with a warning. built-in: none is looked for.",
    ),
    Variable(
        "GAPLESS_MODEL",
        "corrected, fixed",
        "corrected",
        "fixed: choose by predictions alone. corrected: time some of the blocking messages and of the exchanges, and "
        "leave a scheme that turns out to be slower than another one.",
    ),
    Variable(
        "GAPLESS_REPORT",
        "a path",
        "no report",
        "At MPI_Finalize every rank writes what was chosen, predicted and measured to this path and its rank, for "
        "`gapless report`. Every message that is not empty is counted, and every part of a collective that gapless "
        "moves; packing is timed. Not counted: long accesses to files, and messages that arrive as packed bytes. Do "
        "not time a program with it, as with GAPLESS_STATISTICS. "
        "MPI_Comm_spawn's worlds write to the same files: the last one that ends is in them.",
    ),
    Variable(
        "GAPLESS_HOST_ENGINE",
        "avx512, avx2, scalar",
        "the best this CPU has",
        "Force one implementation of the host pack engine.",
    ),
    Variable("GAPLESS_GPU", "0, 1", "1", "0: never ask the GPU driver; every pointer is taken for host memory."),
    Variable(
        "GAPLESS_GPU_AWARE",
        "0, 1, auto",
        "auto",
        "Whether the MPI library takes addresses in GPU memory. auto: the library is asked (MPIX_Query_cuda_support, "
        "MPIX_GPU_query_support). 0: packed bytes go through host memory, whatever the library says. 1: it is believed "
        "to do so, and a library that does not will crash.",
    ),
    Variable(
        "GAPLESS_RESIDENT",
        "0, 1, ready",
        "0",
        "1: keep a kernel on the GPU that takes small messages without a launch. The kernel occupies 16 "
        "multiprocessors in part, and ends after a millisecond without work. The GPU needs compute capability 9.0. "
        "ready: the same, for a program that waits for its GPU work before it passes a buffer to MPI, as CUDA-aware "
        "MPI libraries require. gapless then does not ask at each message whether the default stream is idle.",
    ),
    Variable(
        "GAPLESS_GPU_REGIME",
        "nest, shifted, sectors, transpose, interleaved, segments, tree",
        "chosen per job",
        "Force one kind of GPU kernel for every job that it can run. For measuring.",
        for_developers=True,
    ),
    Variable(
        "GAPLESS_GPU_ENGINE",
        "kernel, ahead, dma",
        "chosen per job",
        "Force kernels, kernels ahead of the program's (blocking calls), or copy engines for every job that they "
        "can do. For measuring.",
        for_developers=True,
    ),
    Variable(
        "GAPLESS_GPU_LAUNCH",
        "graph, kernel",
        "graph",
        "kernel: launch GPU kernels that are waited for as kernels, not as CUDA graphs of one kernel. For measuring.",
        for_developers=True,
    ),
    Variable(
        "GAPLESS_POOL_BYTES",
        "a number of bytes",
        "67108864",
        "N, the most host memory in bytes that a process keeps in unused buffers of up to 16 MiB. Of such buffers the "
        "process keeps at most 4 N of page-locked memory and 4 N of GPU memory; where more would be kept, those of the "
        "length that was not used for longest are freed. Of longer buffers it keeps at most 4 N of page-locked memory, "
        "4 N of GPU memory, and 16 N of host memory, which the system takes back where memory is short. Page-locked "
        "memory, in use or not, is at most 5 N, and at least 8 MiB; "
        "messages that find no page-locked memory go through segments (pipelined). Where messages go direct, N more of "
        "GPU memory is exported, or N / 4 of host memory. Where a fabric reaches GPU memory, 4 N of it is "
        "registered. Long file access from GPU memory goes in pieces of N / 4, but of 1 MiB at least and 16 MiB at "
        "most.",
    ),
    Variable(
        "GAPLESS_FABRIC",
        "off, tcp, shm, verbs, efa, cxi",
        "off",
        "A libfabric provider, between processes that all ask for the same one. Noncontiguous host messages of 16 KiB "
        "and more go by the provider where that is predicted to be sooner than packing them. GPU memory goes packed, "
        "contiguous or not, unless the MPI library reads GPU memory itself; no host memory is on the way where the "
        "provider reaches GPU memory (FI_HMEM). Where the provider cannot be opened, the process says so once, and "
        "messages go other ways. Processes of different nodes use the fabric under `gapless run` (GAPLESS_ALL_RANKS), "
        "processes of one node where GAPLESS_FABRIC_NEIGHBOURS=1 says so.",
    ),
    Variable(
        "GAPLESS_FABRIC_NEIGHBOURS",
        "0, 1",
        "0",
        "1: processes of one node use the fabric too. Collectives of GPU memory on one node then go through host "
        "memory, but for MPI_Alltoall, its v and w forms, and MPI_Neighbor_alltoallv and w, of which a rank sends "
        "512 KiB or more; reductions are the library's.",
    ),
    Variable(
        "GAPLESS_FABRIC_PATIENCE",
        "a number of milliseconds",
        "50",
        "How long a send by a fabric leaves its bytes in the program's memory while nobody receives it. Then they are "
        "copied, unless a GPU has packed them, and the send is complete.",
    ),
    Variable(
        "GAPLESS_DEVICE_PLUGIN",
        "a path",
        "libgapless-cuda.so beside libgapless-core.so",
        "The plugin that drives the GPU.",
        for_developers=True,
    ),
    Variable(
        "GAPLESS_LIBRARY_DIRECTORY",
        "a directory",
        "lib of the installation; in a checkout build/default/lib, else build/release/lib",
        "Where the gapless command looks for libgapless.so and libgapless-core.so.",
        for_developers=True,
    ),
)


def markdown() -> str:
    lines = [
        "# Environment variables",
        "",
        "`make docs` generates this page from `python/gapless/environment.py`; `gapless variables` prints the same. No",
        "variable has to be set. A process reads the variables once, at its first call of MPI or of the C API. A",
        "program with more rights than whoever starts it (set-user-ID) reads `GAPLESS` and `GAPLESS_VERBOSE` alone.",
        "",
        "Two mistakes are ignored, with one line on stderr: a value that is not listed here, and a name that begins",
        "with `GAPLESS_` and is not listed here. `gapless info` shows both mistakes. No mistakes are the names that",
        "modules of clusters, and CMake, give an installation: `ROOT`, `DIR`, `HOME`, `PREFIX`, `BASE`, `LIB`,",
        "`INC` and `VERSION` behind `GAPLESS_`. `gapless run` has the launcher pass the variables that are set to",
        "the ranks on other nodes.",
    ]
    for title, developers in (("For users", False), ("For developers", True)):
        lines += ["", f"## {title}", "", "| variable | values | default | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{v.name}` | {v.values} | {v.default} | {v.meaning} |"
            for v in VARIABLES
            if v.for_developers == developers
        ]
    return "\n".join(lines) + "\n"
