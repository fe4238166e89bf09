"""Writes the parts of the documentation that are made from data: `python -m gapless.documents [--check]`."""

import argparse
import sys
from pathlib import Path

from gapless import environment, locate
from gapless.documents import costs, gpu_latency, losses, messages, results, tables

BEGIN = "<!-- generated: {name} -->"
END = "<!-- end -->"


def replaced(text: str, name: str, content: str) -> str:
    """The text with what stands between the markers of `name` exchanged."""
    head, found, rest = text.partition(BEGIN.format(name=name))
    if not found or END not in rest:
        raise ValueError(f"the markers of {name} are missing")
    return head + found + "\n" + content + "\n" + rest[rest.index(END) :]


def documents(checkout: Path) -> dict[Path, str]:
    """Every generated or partly generated document, as it should be."""
    loaded = results.load(checkout / "bench" / "results")
    filled = {
        "README.md": {"results": tables.readme(loaded), "costs": costs.costs_sentences(loaded)},
        "docs/performance.md": {
            "gpu latency": gpu_latency.gpu_latency_table(loaded),
            "gpu messages": losses.gpu_sentences(loaded),
            "costs": costs.costs_table(loaded),
            "types": tables.types_table(loaded),
        },
        "docs/messages.md": {
            "lost messages": losses.lost_messages_table(loaded),
            "host messages": messages.host_messages_table(loaded),
            "applications": messages.application_messages_table(loaded),
        },
        "docs/gpu-messages.md": {
            "gpu messages": messages.gpu_messages_table(loaded),
            "mixed messages": messages.mixed_messages_table(loaded),
            "gpu halos": messages.gpu_halos_table(loaded),
        },
        "docs/fabric-messages.md": {"rdma": messages.rdma_table(loaded)},
        "docs/endpoints.md": {"endpoints": messages.endpoints_table(loaded)},
        "docs/results.md": {"targets": tables.targets_table(loaded)},
        "docs/gpu-packing.md": {
            "gpu classes": tables.gpu_classes_table(loaded),
            "peer ratios": tables.peer_ratios_table(loaded),
        },
    }
    written = {checkout / "docs" / "environment.md": environment.markdown()}
    for name, parts in filled.items():
        text = (checkout / name).read_text()
        for part, content in parts.items():
            text = replaced(text, part, content)
        written[checkout / name] = text
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which documents are out of date")
    arguments = parser.parse_args()
    stale = []
    for path, content in documents(locate.CHECKOUT).items():
        if path.is_file() and path.read_text() == content:
            continue
        stale.append(path)
        if not arguments.check:
            path.write_text(content)
    if arguments.check and stale:
        print("out of date, run `make docs`: " + ", ".join(str(path) for path in stale), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
