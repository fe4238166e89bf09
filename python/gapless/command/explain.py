"""`gapless explain`: what a datatype is, how it will be moved, and what that costs at least."""

import ctypes
import json
import math
import os
import re
from pathlib import Path

from gapless import _library
from gapless.calibration import profile
from gapless.errors import UserError
from gapless.types import Datatype

LINE = 64  # bytes: what one access to memory moves

# What TYPE may be, by the arguments of each constructor: the parser is src/layout/text/text.cpp.
GRAMMAR = """\
TYPE is one of MPI's datatypes in small letters and without MPI_ (int, double, c_bool, integer8, double_int),
or a constructor of MPI with its arguments in MPI's order, but for the counts that lengths of lists tell:

  contiguous(count, TYPE)
  vector(count, block_length, stride, TYPE)
  hvector(count, block_length, stride_bytes, TYPE)
  indexed([block_lengths], [displacements], TYPE)
  hindexed([block_lengths], [displacements_bytes], TYPE)
  indexed_block(block_length, [displacements], TYPE)
  hindexed_block(block_length, [displacements_bytes], TYPE)
  struct([block_lengths], [displacements_bytes], [TYPES])
  subarray([sizes], [subsizes], [starts], c or fortran, TYPE)
  darray(processes, rank, [sizes], [none, block or cyclic], [arguments or default], [process_sizes],
         c or fortran, TYPE)
  resized(TYPE, lower_bound_bytes, extent_bytes)
  dup(TYPE)
  value_index(TYPE, TYPE)

for example "struct([1,2], [0,8], [double, int])" or "subarray([64,64,64], [1,62,62], [0,1,1], c, double)"
"""

# What the lines say that name a memory.
LEGEND = """\
Lines that name a memory say by which scheme a message of the type goes, and what that takes or spares:

  host, MPICH             both ends in host memory, under that library
  host, Open MPI          the same under Open MPI
  GPU                     in GPU memory, under a library that reads none
  host, MPICH, same node  in host memory of two processes of a node that both run gapless; so with Open MPI
  GPU to another GPU      in GPU memory of two such processes, each with a GPU of its own that the other one reaches
  GPU shared by both      in GPU memory of two such processes that use one GPU
  host, by a fabric       in host memory of two processes that both have the same GAPLESS_FABRIC

In brackets are the other schemes that apply. docs/concepts.md says what each scheme does.
"""

# What a constructor's arguments are, by its name.
FORMS = {form.partition("(")[0]: form for form in re.findall(r"^  (\w+\(.*(?:\n {4,}.*)*)", GRAMMAR, re.MULTILINE)}
COLUMN = re.compile(r"(column (\d+)): (.*)", re.DOTALL)
CONSTRUCTOR = re.compile(r"(\w+)\s*\(|\)")
MOST_SHOWN = 60  # characters of a wrong text


# A constructor with its parenthesis, a list of numbers and of darray's words, a word or number, a closing parenthesis.
TOKEN = re.compile(r"[a-z]\w*\s*\(|\[(?:[-\d\s,]|none|block|cyclic|default)*\]|[-\w]+|\)")
ORDERS = {"c", "fortran"}


def tree(text: str) -> list[str]:
    """The nesting of a right text form: a constructor with its numbers on one line, its children indented below."""
    lines: list[str] = []
    ancestors: list[int] = []
    for token in TOKEN.findall(text):
        indent = "  " * len(ancestors)
        if token == ")":
            ancestors.pop()
        elif token.endswith("("):
            ancestors.append(len(lines))
            lines.append(indent + token[:-1].strip())
        elif token[0].isalpha() and token not in ORDERS:
            lines.append(indent + token)
        else:
            lines[ancestors[-1]] += " " + token
    return lines


MEMORIES = {"host, MPICH": (0, "MPICH"), "host, Open MPI": (0, "Open MPI"), "GPU": (1, "MPICH")}


# To a process of the same node that runs gapless too: how far its memory is, and the library.
IN_NODE = {
    "host, MPICH, same node": ("same node", "MPICH"),
    "host, Open MPI, same node": ("same node", "Open MPI"),
    "GPU to another GPU": ("peer GPU", "MPICH"),
    "GPU shared by both": ("same GPU", "MPICH"),
}


def of_whole(found) -> dict:
    """The scheme that is chosen, and the nanoseconds of those that apply, of predictions that are both sides'."""
    return {
        "chosen": next((p.scheme.decode() for p in found if p.is_chosen[0]), None),
        "ns": {p.scheme.decode(): round(p.ns[0]) for p in found if not math.isnan(p.ns[0])},
    }


def in_node_predictions(datatype: Datatype, count: int) -> dict:
    """For each kind of peer of the same node: the scheme that is chosen, slots and direct among them."""
    result = {}
    for peer, (pair, library) in IN_NODE.items():
        found = (_library.Prediction * _library.SCHEMES)()
        arguments = ctypes.c_int64(count), pair.encode(), library.encode(), found
        _library.call("gapless_transfer_predict_in_node", datatype, *arguments)
        result[peer] = of_whole(found)
    return result


def fabric_prediction(datatype: Datatype, count: int) -> dict:
    """The way by a fabric that is chosen where both sides have such memory, and the nanoseconds of each. None of a
    message that never goes by a fabric."""
    found = (_library.Prediction * _library.FABRIC_WAYS)()
    _library.call("gapless_transfer_predict_fabric", datatype, ctypes.c_int64(count), found)
    return of_whole(found)


def predictions(datatype: Datatype, count: int) -> dict:
    """For each memory and side: the scheme that is chosen, and the nanoseconds of those that apply."""
    result = {}
    for memory, (on_gpu, library) in MEMORIES.items():
        found = (_library.Prediction * _library.SCHEMES)()
        arguments = ctypes.c_int64(count), on_gpu, library.encode(), found
        _library.call("gapless_transfer_predict", datatype, *arguments)
        result[memory] = {
            side: {
                "chosen": next((p.scheme.decode() for p in found if p.is_chosen[i]), None),
                "ns": {p.scheme.decode(): round(p.ns[i]) for p in found if not math.isnan(p.ns[i])},
            }
            for i, side in enumerate(("sender", "receiver"))
        }
    return result


def kernels(text: str, count: int) -> dict:
    """The GPU's kernel for each direction; empty where the CUDA plugin is not built, or nothing moves."""
    directions = {"pack": _library.PACK, "unpack": _library.UNPACK}
    found = {name: _library.outline(text, count, direction) for name, direction in directions.items()}
    return {
        name: {"regime": one.regime.decode(), "word_bytes": one.word_bytes, "reason": one.reason.decode()}
        for name, one in found.items()
        if one is not None
    }


def kernel(found: dict) -> str:
    return f"{found['regime']}, aligned to {found['word_bytes']} B: {found['reason']}"


def named_profile() -> str:
    """What predictions are made from: the file of GAPLESS_PROFILE, for the library that it is of."""
    path = os.environ.get("GAPLESS_PROFILE", "")
    if path in ("", profile.BUILT_IN):
        return profile.BUILT_IN
    if why := profile.fault(path, ""):
        return f"{profile.BUILT_IN}; {path} is ignored: {why}"
    return f"{path} for {json.loads(Path(path).read_text())['library']}, else {profile.BUILT_IN}"


def microseconds(ns: float) -> str:
    us = abs(ns) / 1000
    return f"{us:.0f} us" if us >= 100 else f"{us:.3g} us"


def way(side: dict) -> str:
    """Host memory is predicted as a difference: what packing spares, beside leaving the message to the library."""
    chosen, ns = side["chosen"], side["ns"]
    if chosen is None:
        return "nothing moves"
    if "native" not in ns:
        others = [f"{scheme} {microseconds(of)}" for scheme, of in ns.items() if scheme != chosen]
        return f"{chosen} {microseconds(ns[chosen])} ({', '.join(others)})"
    if "packed" not in ns:
        return "native: it is contiguous"
    other = "native" if chosen == "packed" else "packed"
    return f"{chosen}, {microseconds(ns['packed'])} {'sooner' if ns[chosen] <= ns[other] else 'later'} than {other}"


def sooner(ns: float) -> str:
    return f"{microseconds(ns)} {'sooner' if ns <= 0 else 'later'}"


def way_in_node(found: dict) -> str:
    """As way(), where slots or a ring may be among those that are compared with leaving a message to the library."""
    chosen, ns = found["chosen"], found["ns"]
    if chosen is None or "native" not in ns or not ns.keys() & {"slots", "direct"}:
        return way(found)
    others = [f"{scheme} {sooner(of)}" for scheme, of in ns.items() if scheme not in (chosen, "native")]
    if chosen == "native":
        return f"native ({', '.join(others)})"
    return f"{chosen}, {sooner(ns[chosen])} than native ({', '.join(others)})"


def way_by_fabric(found: dict, packed_bytes: int) -> str:
    """As way(): of noncontiguous messages that are long enough."""
    if found["chosen"] is None and packed_bytes > 0:
        return "not by the fabric: contiguous, or shorter than 16 KiB"
    return way(found)


def figures(text: str, count: int) -> dict:
    datatype = Datatype.parse(text)
    facts = datatype.facts()
    traffic = datatype.traffic(count)
    moved = traffic.lines_touched * LINE
    return {
        "type": text,
        "canonical": str(datatype),
        "size": datatype.size,
        "lower_bound": datatype.lower_bound,
        "extent": datatype.extent,
        "true_lower_bound": datatype.true_lower_bound,
        "true_extent": datatype.true_extent,
        "blocks": facts.block_count,
        "shortest_block": facts.shortest_block,
        "longest_block": facts.longest_block,
        "alignment": facts.alignment,
        "injective": bool(facts.injective),
        "memory_bytes": facts.memory_bytes,
        "count": count,
        "packed_bytes": traffic.packed_bytes,
        "lines_touched": traffic.lines_touched,
        "useful_share": traffic.packed_bytes / moved if moved else 1.0,
        "kernels": kernels(text, count),
        "profile": named_profile(),
        "messages": predictions(datatype, count),
        "in_node": in_node_predictions(datatype, count),
        "fabric": fabric_prediction(datatype, count),
    }


def mistake(text: str, error: str) -> str:
    """The parser's words, with the text and what the constructor is given in which the mistake is."""
    found = COLUMN.fullmatch(error)
    if found is None:
        return error
    end = int(found[2]) - 1
    constructors: list[str] = []
    for one in CONSTRUCTOR.finditer(text, 0, end):
        if one[1] is not None:
            constructors.append(one[1])
        elif constructors:
            constructors.pop()
    first = max(0, min(end, len(text)) - MOST_SHOWN // 2)
    shown = (
        ("…" if first > 0 else "") + text[first : first + MOST_SHOWN] + ("…" if first + MOST_SHOWN < len(text) else "")
    )
    said = f"{found[1]} of {' '.join(shown.split()) or 'an empty text'}: {found[3]}"
    form = FORMS.get(constructors[-1]) if constructors else None
    return f"{said}; it is {' '.join(form.split())}" if form else said


def explain(arguments) -> int:
    try:
        f = figures(arguments.type, arguments.count)
    except (ValueError, OverflowError) as error:
        raise UserError(mistake(arguments.type, str(error)), 2) from error
    except (OSError, AttributeError, MemoryError) as error:
        raise UserError(str(error)) from error
    if arguments.json:
        print(json.dumps(f, indent=2))
        return 0
    if f["shortest_block"] == f["longest_block"]:
        blocks = f"{f['blocks']} of {f['longest_block']} B"
    else:
        blocks = f"{f['blocks']} of {f['shortest_block']} to {f['longest_block']} B"
    rows = [
        ("canonical", f["canonical"]),
        ("size", f"{f['size']} B packed, one every {f['extent']} B"),
        ("span", f"{f['true_extent']} B from offset {f['true_lower_bound']}"),
        ("blocks", blocks),
        ("alignment", f"{f['alignment']} B: the widest word a copy may use"),
        ("unpack", "in parallel: no byte is named twice" if f["injective"] else "in order: a byte may be named twice"),
        ("memory", f"{f['memory_bytes']} B of lists and modes describe the type"),
        (
            f"traffic, count {f['count']}",
            f"{f['packed_bytes']} B packed, {LINE} B lines touched: {f['lines_touched']}, so "
            f"{100 * f['useful_share']:.0f} % of what memory moves is data",
        ),
    ]
    rows += [(f"GPU, to {direction}", kernel(found)) for direction, found in f["kernels"].items()]
    others = "" if "GAPLESS_PROFILE" in os.environ else " (GAPLESS_PROFILE=FILE: what a calibration has measured)"
    rows.append(("profile", f["profile"] + others))
    for memory, sides in f["messages"].items():
        sent, received = way(sides["sender"]), way(sides["receiver"])
        rows.append((memory, sent if sent == received else f"sent {sent}; received {received}"))
    rows += [(peer, way_in_node(found)) for peer, found in f["in_node"].items()]
    rows.append(("host, by a fabric", way_by_fabric(f["fabric"], f["packed_bytes"])))
    print("\n".join(tree(arguments.type)))
    print()
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    return 0
