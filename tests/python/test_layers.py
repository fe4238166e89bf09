"""Arrows point down only: a layer includes itself and the layers before it in src/CMakeLists.txt.

The core's layers never include mpi.h. The CUDA plugin in pack/cuda stands on device. The shim knows of the MPI layer
only the contract between them.
"""

import re

import pytest

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
SHIM_MAY_SEE = {"mpi/variant.hpp", "mpi/functions.def"}


def core_layers(root) -> list[str]:
    return re.search(r"foreach\(layer ([^)]+)\)", (root / "src" / "CMakeLists.txt").read_text())[1].split()


def sources(folder):
    return [
        path for path in sorted(folder.rglob("*")) if path.suffix in {".hpp", ".cpp", ".cu", ".cuh", ".h", ".c", ".inc"}
    ]


def layer_of(root, path) -> str:
    parts = path.relative_to(root / "src").parts
    return "cuda" if parts[:2] == ("pack", "cuda") else parts[0]


def allowed_layers(root) -> dict[str, set[str]]:
    order = core_layers(root)
    allowed = {layer: set(order[: i + 1]) for i, layer in enumerate(order)}
    allowed["cuda"] = {"cuda", *allowed["device"]}
    allowed["mpi"] = {"mpi", *order}
    allowed["shim"] = {"shim"}
    return allowed


def violations(root, text: str, path) -> list[str]:
    layer = layer_of(root, path)
    allowed = allowed_layers(root)
    found = []
    for name in INCLUDE.findall(text):
        target = "cuda" if name.startswith("pack/cuda/") else name.split("/")[0]
        if layer in core_layers(root) and name in ("mpi.h", "mpi_abi.h"):
            found.append(f"{path} includes {name}")
        if "/" not in name or target not in allowed or target in allowed[layer]:
            continue
        if not (layer == "shim" and name in SHIM_MAY_SEE):
            found.append(f"{path} includes {name}")
    return found


def test_no_layer_includes_a_higher_one(root):
    files = sources(root / "src")
    assert len(files) > 10
    assert [v for path in files for v in violations(root, path.read_text(), path)] == []


@pytest.mark.parametrize(
    "path, text",
    [
        ("layout/layout.hpp", '#include "pack/job.hpp"'),
        ("pack/host.cpp", '#include "device/device.hpp"'),
        ("transfer/choose.cpp", "#include <mpi.h>"),
        ("layout/layout.hpp", '#include "pack/cuda/kernels.hpp"'),
        ("shim/shim.cpp", '#include "transfer/transfer.hpp"'),
    ],
)
def test_a_violation_is_noticed(root, path, text):
    assert violations(root, text, root / "src" / path) != []
