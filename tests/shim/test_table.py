"""The table of functions against what it is about: the headers of three MPI libraries."""

import re
from functools import cache

import pytest
from table import rows

from conftest import ABIS, PREFIXES

HEADERS = {
    "mpich": PREFIXES["mpich"] / "include" / "mpi_proto.h",
    "abi": PREFIXES["abi"] / "include" / "mpi_abi.h",
    "openmpi": PREFIXES["openmpi"] / "include" / "mpi.h",
}
HANDLES = {
    "communicator": "MPI_Comm",
    "file": "MPI_File",
    "window": "MPI_Win",
    "session": "MPI_Session",
    "message": "MPI_Message",
    "request": "MPI_Request",
    "group": "MPI_Group",
}
MARKS = {"intercepted", "guarded", "passed", "refused"}
# Untyped pointers that are no choice buffers: attributes, callbacks' state, addresses of pointers, and addresses that
# are computed with or given back, but neither read nor written.
NOT_BUFFERS = re.compile(r"attribute_val|attr_val|extra_state|logical_(true|false)|baseptr|buffer_addr|location")
NOT_ACCESSED = {"MPI_Free_mem", "MPI_Win_detach", "MPI_Buffer_detach", "MPI_Buffer_detach_c"}
# The second half of a transfer names the first half's buffer again, which was looked at there.
SECOND_HALF = re.compile(r"MPI_File_\w+_end$")
NOT_STANDARD = {"MPI_Session_set_info"}  # declared by Open MPI only
ASKED_BY_PROGRAMS = re.compile(r"MPI_(T|Abi)_|MPI_Get_(library_)?version$|MPI_DUP_FN$")


@cache
def prototypes(abi: str) -> dict[str, list[str]]:
    """Function name -> its parameters, as a header declares them."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", HEADERS[abi].read_text(), flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#(.*\\\n)*.*$", " ", text, flags=re.MULTILINE)
    found = {}
    for declaration in text.split(";"):
        matched = re.search(r"\b(MPI_[A-Z]\w*)\s*\((.*)\)", " ".join(declaration.split()))
        if not matched or "typedef" in declaration or "(*" in matched.group(2).replace(" ", ""):
            continue
        depth, parameters = 0, [""]
        for character in matched.group(2):
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth < 0:
                break
            if character == "," and depth == 0:
                parameters.append("")
            else:
                parameters[-1] += character
        found[matched.group(1)] = [parameter.strip() for parameter in parameters if parameter.strip() != "void"]
    return found


def is_pointer_to_anything(parameter: str) -> bool:
    return re.match(r"(const )?void ?\*(?! ?\*)", parameter) is not None


def choice_buffers(name: str, parameters: list[str]) -> tuple[int, ...]:
    if name in NOT_ACCESSED or SECOND_HALF.match(name):
        return ()
    return tuple(
        index
        for index, parameter in enumerate(parameters)
        if is_pointer_to_anything(parameter) and not NOT_BUFFERS.search(parameter)
    )


def has_a_handle(parameters: list[str]) -> bool:
    return any(re.match(rf"(const )?{type_name}\b", word) for word in parameters for type_name in HANDLES.values())


@pytest.mark.parametrize("abi", ABIS)
def test_headers_were_read(abi):
    assert len(prototypes(abi)) > 400
    assert len(prototypes(abi)["MPI_Sendrecv"]) == 12


def test_rows_are_well_formed():
    names = [row.name for row in rows()]
    assert len(names) == len(set(names)) > 400
    assert {row.mark for row in rows()} <= MARKS
    assert all((row.since == "large_count") == row.name.endswith("_c") for row in rows())


@pytest.mark.parametrize("abi", ABIS)
def test_every_function_that_should_be_listed_is(abi):
    listed = {f"MPI_{row.name}" for row in rows()}
    missing = [
        name
        for name, parameters in prototypes(abi).items()
        if name not in listed | NOT_STANDARD
        and not ASKED_BY_PROGRAMS.match(name)
        and (has_a_handle(parameters) or choice_buffers(name, parameters))
    ]
    assert missing == []


@pytest.mark.parametrize("abi", ABIS)
def test_arguments_are_what_the_rows_say(abi):
    for row in rows():
        name = f"MPI_{row.name}"
        if name not in prototypes(abi):
            continue
        parameters = prototypes(abi)[name]
        assert row.buffers == choice_buffers(name, parameters), name
        if row.handle != "none":
            assert re.match(rf"(const )?{HANDLES[row.handle]}\b", parameters[row.handle_index]), name


def test_buffers_are_looked_after():
    assert [row.name for row in rows() if row.buffers and row.mark == "passed"] == []
    assert [row.name for row in rows() if row.mark == "guarded" and not row.buffers] == []


def test_every_function_exists_where_it_is_said_to():
    declared_by = {row: {abi for abi in ABIS if f"MPI_{row.name}" in prototypes(abi)} for row in rows()}
    for row, abis in declared_by.items():
        assert abis, f"no library has {row.name}"
        if row.since in ("mpi_3_0", "mpi_3_1", "mpi_4_0"):
            assert abis == set(ABIS), row.name
        if row.since in ("large_count", "mpi_4_1", "mpi_5_0"):
            assert abis == set(ABIS) - {"openmpi"}, row.name
