"""The public C interface is gapless.h: what it declares is exported, and no other C symbol of the core is.

The core's C++ symbols are for variants, plugins and tests of the same build; they are mangled and promise nothing.
"""

import re
import subprocess
from pathlib import Path

from gapless import _library, locate

# Between gapless's own libraries and tools of one version; no program may use them.
INTERNAL = {
    "gapless_combined_parts",
    "gapless_combined_received",
    "gapless_endpoint_statistics",
    "gapless_fabric_counts",
    "gapless_freed_calls",
    "gapless_profile_fault",
    "gapless_profile_library",
    "gapless_profile_path",
    "gapless_pulls_copied_out",
    "gapless_pulls_fetched",
    "gapless_pulls_mapped",
    "gapless_pulls_received",
    "gapless_rings_copied_out",
    "gapless_rings_helpers_looks",
    "gapless_settings_faults",
    "gapless_transfer_analyses",
    "gapless_transfer_force_scheme",
    "gapless_transfer_leftovers",
    "gapless_transfer_predict",
    "gapless_transfer_predict_fabric",
    "gapless_transfer_predict_in_node",
    "gapless_transfer_set_correction",
    "gapless_transfer_statistics",
}

HEADER = Path(__file__).parents[2] / "include" / "gapless" / "gapless.h"


def declared() -> set[str]:
    return set(re.findall(r"GAPLESS_API [^;(]*?(gapless_\w+)\(", HEADER.read_text()))


def exported() -> set[str]:
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", str(locate.require(locate.CORE))]
    symbols = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[0] for line in symbols if not line.startswith("_Z")}


def test_the_header_is_the_interface():
    assert len(declared()) > 25
    assert exported() - INTERNAL == declared()


def test_python_declares_every_function():
    python = set(_library._PROTOTYPES) | {
        "gapless_type_free",
        "gapless_error_string",
        "gapless_last_error",
        "gapless_version",
    }
    assert python - INTERNAL == declared()


def test_the_core_leaves_room_for_other_libraries_with_thread_local_storage():
    """The dynamic linker has little room for such storage of libraries that are loaded late, as MPI's is by Python."""
    command = ["readelf", "--segments", "--wide", str(locate.require(locate.CORE))]
    segments = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sizes = [int(line.split()[5], 16) for line in segments.splitlines() if line.split()[:1] == ["TLS"]]
    assert sum(sizes) <= 256
