"""How the tests run a program with gapless and without: on more ranks than cores, so waiting ranks must give way."""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from oversubscribed import ENVIRONMENT  # noqa: E402  (found through the line above)

SHIM = os.environ["GAPLESS_TEST_SHIM"]
PACKED = {"LD_PRELOAD": SHIM, "GAPLESS_STATISTICS": 1, "GAPLESS_SCHEME": "packed"}


def launch(mpiexec, ranks, words, settings, seconds, environment=None, folder=None):
    """The completed process of so many ranks, to which the settings go. Nothing of gapless is inherited."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GAPLESS", "LD_"))}
    of_ranks = [f"{name}={value}" for name, value in settings.items()]
    return subprocess.run(
        [mpiexec, "-n", str(ranks), "env", *of_ranks, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=inherited | ENVIRONMENT | (environment or {}),
        timeout=seconds,
    )


def packed_messages(said):
    """How many messages each rank has packed, of what the ranks' statistics say."""
    return [int(number) for number in re.findall(r"packed (\d+) messages", said)]
