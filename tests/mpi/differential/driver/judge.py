"""Whether what came of a case under gapless is as good as what comes of it without.

An outcome is a tuple of (rank, text), one for each rank that had something to tell: all ranks of an erroneous case,
those that failed of another. A case that ended the run has one entry, of rank -1.
"""

ERRONEOUS = ("truncation", "partial", "misuse")
RIGHT = ()
LONGEST_ELEMENT = 32
"""Bytes of the widest basic element, a complex number of two long doubles."""


def ended(outcome):
    """Did the run end in the case, or the heap?"""
    return any(rank == -1 or "heap=" in text for rank, text in outcome)


def damages(outcome):
    """Does an outcome tell of memory outside the buffers, or of a process that ended?"""
    return ended(outcome) or any(word in text for _, text in outcome for word in ("outside=", "overwritten="))


def calls(outcome):
    """[(rank, name of the call, {what: value})] of an outcome."""
    result = []
    for rank, text in outcome:
        for call in text.removeprefix("wrong! ").split("; "):
            words = call.split()
            values = dict(word.split("=", 1) for word in words if "=" in word)
            result.append((rank, " ".join(word for word in words if "=" not in word), values))
    return result


def tells_of_error(values):
    return values.get("class", "SUCCESS") != "SUCCESS" or values.get("handler", "0") != "0"


def is_call_as_good(family, gapless, native, ignores_data):
    """Of an erroneous program: gapless tells of an error wherever the library does, once, and may call it by its name
    where the library returns MPI_SUCCESS after its handler has. It may tell of a truncation that the library, which had
    the sender's length, has overlooked. Without an error, all is as the library has it, or as it was sent. A message of
    the receive's own type and length, in the other direction, may arrive where the library loses it."""
    if "fits" in gapless and gapless.get("data") == "right" and not tells_of_error(gapless):
        return gapless.get("stray") == native.get("stray")
    if family == "partial" and is_good_part(gapless, native):
        return True
    if tells_of_error(gapless):
        # After a handler that returns, a library may say MPI_SUCCESS.
        named = gapless.get("class") in ("TRUNCATE", "IN_STATUS") or gapless["handler"] == "1"
        names_truncation = family == "truncation" and named and gapless["handler"] in "01"
        if not tells_of_error(native):
            return names_truncation
        same_class = gapless.get("class") == native.get("class") or native.get("class") == "SUCCESS" or names_truncation
        same_rest = all(gapless.get(what) == native.get(what) for what in ("position", "stray"))
        told_once = gapless.get("handler") == native.get("handler") or (
            gapless.get("handler") == "1" and native.get("handler") not in ("0", None)
        )
        return same_class and same_rest and told_once
    ignored = {"outside", "heap", "overwritten"} | (
        {"data"} if ignores_data or gapless.get("data") == "right" else set()
    )
    return all(gapless.get(what) == native.get(what) for what in {*gapless, *native} - ignored)


def is_good_part(gapless, native):
    """Of a message that ends inside a basic element, or is of another type: an error is told of, once, or all elements
    but the last are as sent, and counted as the library counts them. MPICH tells of a part of an element on some of its
    ways only, and so does gapless on its own: of which short messages it does is asserted by the tests of
    lifetime/errors.cpp."""
    if gapless.get("stray") != native.get("stray"):
        return False
    if tells_of_error(gapless):
        return gapless.get("class") in ("SUCCESS", "TYPE", "TRUNCATE", "IN_STATUS") and gapless["handler"] in "01"
    if "data" not in gapless:
        return False
    if gapless.get("bytes") == native.get("bytes") and gapless.get("elements") != native.get("elements"):
        return False
    lost = gapless["data"].split("@")[0]
    return lost == "right" or int(lost) < LONGEST_ELEMENT


def is_erroneous_as_good(family, gapless, native, ignores_data):
    mine, library = calls(gapless), calls(native)
    if [call[:2] for call in mine] != [call[:2] for call in library]:
        return False
    return all(is_call_as_good(family, a[2], b[2], ignores_data) for a, b in zip(mine, library, strict=True))


def is_as_good(family, gapless, natives):
    """natives: what several runs of the case came to. Any of them will do, and where they differ in the data alone, the
    data may be anything."""
    if any(ended(native) for native in natives) or gapless in natives:
        return True
    if ended(gapless) or (damages(gapless) and not any(damages(native) for native in natives)):
        return False
    if family not in ERRONEOUS:
        # What is right is compared with the oracle. Where the library fails, too, how is its business.
        failing = {rank for native in natives for rank, _ in native}
        return {rank for rank, _ in gapless} <= failing
    without_data = {str([(r, n, {**v, "data": ""}) for r, n, v in calls(native)]) for native in natives}
    ignores_data = len(set(natives)) > 1 and len(without_data) == 1
    return any(is_erroneous_as_good(family, gapless, native, ignores_data) for native in natives)


def kind_of(family, gapless, natives):
    """A few words that faults of one cause have in common."""
    if ended(gapless):
        return f"{family}: {gapless[0][1]}"
    if damages(gapless):
        return f"{family}: writes outside of its buffers"
    native = calls(next(iter(natives), RIGHT))
    for mine, library in zip(calls(gapless), native, strict=False):
        differing = [what for what, value in mine[2].items() if library[2].get(what) != value]
        if differing:
            return f"{family}: {mine[1]}: {differing[0]}"
    return f"{family}: {calls(gapless)[0][1] if gapless else 'nothing'}"
