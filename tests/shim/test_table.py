"""The table of functions against what it is about: the headers of three MPI libraries."""

import re
from functools import cache
from pathlib import Path

import pytest
from functions import extensions, rows

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
MARKS = {"intercepted", "guarded", "waiting", "passed", "endpoints"}
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


# What the parameters at the places of a role look like.
READ, WRITTEN = r"const void ?\*", r"void ?\*"
COUNT = r"(int|MPI_Count|MPI_Aint) (\w*count|target_cout|n|\w*size)$"  # sic: a header of Open MPI
COUNTS = r"const (int|MPI_Count) ?\w*counts ?\[\]$"
DISPLACEMENTS = r"const (int|MPI_Count|MPI_Aint) ?\w*displs ?\[\]$"
DATATYPE, DATATYPES = r"MPI_Datatype \w+$", r"const MPI_Datatype ?\w+types ?\[\]$"
POSITION = r"(int|MPI_Count|MPI_Aint) ?\*position"
PARTITIONS = r"int partitions"
SIMPLE, VECTOR, VECTOR_W = (COUNT, DATATYPE), (COUNTS, DISPLACEMENTS, DATATYPE), (COUNTS, DISPLACEMENTS, DATATYPES)


def handle_roles() -> dict[str, tuple[str, ...]]:
    roles = {}
    for role, type_name in HANDLES.items():
        roles[role] = (rf"(const )?{type_name} \w+$",)
        roles[f"{role}_place"] = roles[f"new_{role}"] = (rf"{type_name} ?\*",)
    return roles


ROLES = {
    **{f"send{suffix}": (READ, *rest) for suffix, rest in (("", SIMPLE), ("_one", (DATATYPE,)))},
    **{f"receive{suffix}": (WRITTEN, *rest) for suffix, rest in (("", SIMPLE), ("_one", (DATATYPE,)))},
    **{
        f"{way}_{peers}{suffix}": (memory, *rest)
        for way, memory in (("send_to", READ), ("receive_from", WRITTEN))
        for peers in ("all", "neighbors")
        for suffix, rest in (("", SIMPLE), ("_v", VECTOR), ("_w", VECTOR_W))
    },
    **handle_roles(),
    "replace": (WRITTEN, *SIMPLE),
    "broadcast": (WRITTEN, *SIMPLE),
    "send_partitions": (READ, PARTITIONS, *SIMPLE),
    "receive_partitions": (WRITTEN, PARTITIONS, *SIMPLE),
    "operand": (READ, *SIMPLE),
    "operand_of_all": (READ, *SIMPLE),
    "operand_of_all_v": (READ, COUNTS, DATATYPE),
    "result": (WRITTEN, *SIMPLE),
    "result_v": (WRITTEN, COUNTS, DATATYPE),
    "result_of_scan": (WRITTEN, *SIMPLE),
    "packed_in": (READ, COUNT, POSITION),
    "packed_out": (WRITTEN, COUNT, POSITION),
    "memory": (WRITTEN, COUNT),
    "target": (r"int target_rank", r"MPI_Aint target_disp", COUNT, DATATYPE),
    "target_rank": (r"int target_rank",),
    "file_offset": (r"MPI_Offset offset$",),
    "file_pointer": (r"MPI_File \w+$",),
    "collective_file": (r"MPI_File \w+$",),
    "new_persistent_request": (r"MPI_Request ?\*",),
    "requests": (r"int (in)?count", r"(const )?MPI_Request \w+ ?\[\]"),
    "datatype_place": (r"MPI_Datatype ?\*",),
    "operation": (r"MPI_Op \w+$",),
    "status": (r"MPI_Status ?\*",),
    "statuses": (r"MPI_Status ?(\*array_of_statuses|array_of_statuses ?\[\])",),
    "answer": (r"(int|MPI_Count|void) ?\*\w+$",),
    "answers": (r"int (max\w+|incount|n)$", r"int (\*\w+|\w+ ?\[\])$"),
    "destination": (r"int dest$",),
    "synchronous": (r"int dest$",),
    "buffered": (r"int dest$",),
    "source": (r"int (source|dest)$",),  # MPICH declares MPI_Precv_init's as dest
    "root": (r"int root$",),
    "tag": (r"int tag$",),
    "send_tag": (r"int sendtag$",),
    "receive_tag": (r"int recvtag$",),
}
# Parameters that look like one of these have a role in every function.
NEEDS_A_ROLE = re.compile(rf"(const )?({'|'.join(HANDLES.values())}|MPI_Status|MPI_Op)\b|int (dest|source|root|tag)$")


@pytest.mark.parametrize("abi", ABIS)
def test_arguments_are_what_their_roles_say(abi):
    for row in rows():
        parameters = prototypes(abi).get(f"MPI_{row.name}")
        if parameters is None:
            continue
        for role in row.roles:
            looks = ROLES[role.kind]
            assert len(looks) == len(role.places), (row.name, role)
            for place, look in zip(role.places, looks, strict=True):
                assert re.match(look, parameters[place]), (row.name, role.kind, parameters[place])


@pytest.mark.parametrize("abi", ABIS)
def test_every_argument_that_needs_a_role_has_one(abi):
    for row in rows():
        name = f"MPI_{row.name}"
        parameters = prototypes(abi).get(name, [])
        with_role = {place for role in row.roles for place in role.places}
        needing = {place for place, parameter in enumerate(parameters) if NEEDS_A_ROLE.match(parameter)}
        assert needing | set(choice_buffers(name, parameters)) <= with_role, name


ENDPOINTS = Path(__file__).parents[2] / "src" / "endpoints"
# Weights, which are null of a distributed graph that has none, and what MPI reads though it is not constant.
NO_ANSWERS = {
    ("MPI_Dist_graph_neighbors", 3),
    ("MPI_Dist_graph_neighbors", 6),
    ("MPI_Group_range_excl", 2),
    ("MPI_Group_range_incl", 2),
}


def served() -> set[str]:
    """What endpoints carry out, but for collectives."""
    lists = (ENDPOINTS / "served.def").read_text(), (ENDPOINTS / "calls" / "calls.hpp").read_text()
    names = re.findall(r"^ENDPOINTS_SERVED(?:_INSIDE)?\((\w+)\)$", lists[0], re.MULTILINE)
    return {*names, *re.findall(r"\bX\((\w+)\)", lists[1])}


@pytest.mark.parametrize("abi", ABIS)
def test_every_result_of_what_endpoints_serve_has_a_role(abi):
    names = served()
    assert {"Comm_rank", "Testsome", "Group_size"} <= names
    for row in rows():
        if row.name not in names:
            continue
        name = f"MPI_{row.name}"
        with_role = {place for role in row.roles for place in role.places}
        written = {
            place
            for place, parameter in enumerate(prototypes(abi).get(name, []))
            if re.match(r"(?!const\b)[\w ]+ ?(\*|\w+ ?\[\])", parameter)
        }
        missing = {(name, place) for place in written - with_role}
        assert missing <= NO_ANSWERS, name


def test_only_the_buffers_of_rooted_functions_are_the_roots():
    for row in rows():
        at_root = [role for role in row.roles if role.at_root]
        assert not at_root or "root" in [role.kind for role in row.roles], row.name
        assert len(at_root) == bool(re.match(r"I?(gather|scatter|reduce)(v?)(_init)?(_c)?$", row.name, re.IGNORECASE))


def has_buffers(row) -> bool:
    return any(re.match(r"(const )?void", ROLES[role.kind][0]) for role in row.roles)


def test_buffers_are_looked_after():
    assert [row.name for row in rows() if has_buffers(row) and row.mark in ("passed", "waiting")] == []
    assert [row.name for row in rows() if row.mark == "guarded" and not has_buffers(row)] == []


# What the library does with a request of ours: its completion tells that it was cancelled, numbers stand for the same
# handle, and generalised requests are made by programs alone.
REQUESTS_PASS = {"Grequest_complete", "Request_c2f", "Request_toint"}


def test_requests_are_looked_after():
    kinds = {"request", "request_place", "requests"}
    past_us = {row.name for row in rows() if row.mark != "intercepted" and kinds & {role.kind for role in row.roles}}
    assert past_us == REQUESTS_PASS


# Calls of these kinds that neither wait for another process nor look for a message.
LOCAL = re.compile(
    r"(Comm|Win|File|Session)_(get|set|call|delete)_(attr|errhandler|name|info|parent|group|view|amode|atomicity|"
    r"byte_offset|position|type_extent|nth_pset|num_psets|pset_info)|(Comm|Win|File|Group|Session|Message|Request)_"
    r"(c2f|f2c|toint|fromint)|Attr_(get|put|delete)|Errhandler_(get|set)|Group_\w+|Comm_(rank|size|remote_size|"
    r"remote_group|group|compare|test_inter)|Cart_(coords|get|rank|shift)|Cartdim_get|Graph_(get|neighbors)|"
    r"Graph_neighbors_count|Graphdims_get|Dist_graph_neighbors(_count)?|Topo_test|Pack_size|Win_shared_query|Abort|"
    r"Session_call_errhandler|Grequest_complete"
)
COLLECTIVE = {"Comm_set_info", "Win_set_info", "File_set_info", "File_set_view", "File_set_atomicity"}


def test_calls_that_may_wait_start_what_is_deferred():
    passed = {row.name.removesuffix("_c") for row in rows() if row.mark == "passed"}
    starts = {row.name for row in rows() if "new_request" in {role.kind for role in row.roles}}
    assert passed & COLLECTIVE == set()
    assert {name for name in passed - starts if not LOCAL.fullmatch(name)} == set()


def test_extensions_that_know_requests_are_known():
    text = " ".join(HEADERS["mpich"].read_text().split())
    found = {
        name.removesuffix("_c") for name, of in re.findall(r"\b(MPIX_\w+) ?\(([^;]*)\)", text) if "MPI_Request" in of
    }
    # The first looks at a request and completes nothing; it starts what is deferred. The others make requests that are
    # not ours, and wait for those alone.
    assert "Request_is_complete" in extensions()
    assert found == {"MPIX_Request_is_complete"} | {
        f"MPIX_{name}"
        for name in (
            "Grequest_class_allocate",
            "Grequest_start",
            "Irecv_enqueue",
            "Isend_enqueue",
            "Stream_irecv",
            "Stream_isend",
            "Wait_enqueue",
            "Waitall_enqueue",
        )
    }


def test_every_function_exists_where_it_is_said_to():
    declared_by = {row: {abi for abi in ABIS if f"MPI_{row.name}" in prototypes(abi)} for row in rows()}
    for row, abis in declared_by.items():
        assert abis, f"no library has {row.name}"
        if row.since in ("mpi_3_0", "mpi_3_1", "mpi_4_0"):
            assert abis == set(ABIS), row.name
        if row.since in ("large_count", "mpi_4_1", "mpi_5_0"):
            assert abis == set(ABIS) - {"openmpi"}, row.name
