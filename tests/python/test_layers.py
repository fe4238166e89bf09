"""Arrows point down only: a layer includes itself and the layers before it in src/CMakeLists.txt.

The core's layers never include mpi.h. What is compiled for a GPU stands in rooms named cuda, which nothing else
includes. The shim knows of the MPI layer only the contract between them.
"""

import re

import pytest

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
SHIM_MAY_SEE = {f"mpi/table/{name}" for name in ("variant.hpp", "functions.def", "extensions.def", "additions.def")}


def core_layers(root) -> list[str]:
    return re.search(r"foreach\(layer ([^)]+)\)", (root / "src" / "CMakeLists.txt").read_text())[1].split()


def sources(folder):
    return [
        path for path in sorted(folder.rglob("*")) if path.suffix in {".hpp", ".cpp", ".cu", ".cuh", ".h", ".c", ".inc"}
    ]


def allowed_layers(root) -> dict[str, set[str]]:
    order = core_layers(root)
    allowed = {layer: set(order[: i + 1]) for i, layer in enumerate(order)}
    allowed["mpi"] = {"mpi", *order}
    allowed["endpoints"] = {"endpoints", *allowed["mpi"]}
    allowed["shim"] = {"shim"}
    return allowed


def violations(root, text: str, path) -> list[str]:
    folders = path.relative_to(root / "src").parts[:-1]
    layer = folders[0]
    allowed = allowed_layers(root)
    found = []
    for name in INCLUDE.findall(text):
        target = name.split("/")[0]
        if layer in core_layers(root) and name in ("mpi.h", "mpi_abi.h"):
            found.append(f"{path} includes {name}")
        if "cuda" in name.split("/")[:-1] and "cuda" not in folders:
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
        ("base/settings.hpp", '#include "layout/layout.hpp"'),
        ("layout/layout.hpp", '#include "pack/job.hpp"'),
        ("device/device.hpp", '#include "pack/job.hpp"'),
        ("device/device.hpp", '#include "device/cuda/context.hpp"'),
        ("pack/gpu_engine.hpp", '#include "pack/cuda/kernels/kernels.hpp"'),
        ("transfer/choice/choose.cpp", "#include <mpi.h>"),
        ("layout/layout.hpp", '#include "pack/cuda/kernels/kernels.hpp"'),
        ("shim/shim.cpp", '#include "transfer/operation.hpp"'),
    ],
)
def test_a_violation_is_noticed(root, path, text):
    assert violations(root, text, root / "src" / path) != []
